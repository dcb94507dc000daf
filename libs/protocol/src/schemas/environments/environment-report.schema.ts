import { z } from 'zod';

/** The report of a version of an environment: what `palestra env validate` found and what scripted players reached. */

const text = (max: number) =>
  z
    .string()
    .max(max)
    .refine((value) => !value.includes('\0') && value.isWellFormed(), { error: 'must be Unicode text without NUL characters' });
const finite = z.number();

const checkSchema = z.object({
  id: z.string().regex(/^[a-z][a-z0-9_.]{0,63}$/, { error: 'id must be lower-case letters, digits, "_" and "."' }),
  title: text(200),
  status: z.enum(['passed', 'failed', 'skipped']),
  detail: text(4_000).describe('The finding. A failed check says what to do; a skipped check says why.'),
});

const playerSchema = z.object({
  name: text(64).min(1),
  description: text(500),
  split: text(200),
  tasks: z.int().min(1).describe('Number of tasks played.'),
  samples: z.int().min(1).describe('Episodes per task.'),
  mean: finite.describe('Mean of the total reward of an episode, over the tasks.'),
  low: finite.describe('Lower end of its 95 % confidence interval.'),
  high: finite.describe('Upper end of its 95 % confidence interval.'),
  solved: z.number().min(0).max(1).describe('Share of the episodes that reached the maximum reward.'),
});

export const environmentReportSchema = z.object({
  created_at: z.iso.datetime(),
  kit: text(64).describe('Version of the kit that wrote the report.'),
  checks: z.array(checkSchema).max(100),
  players: z.array(playerSchema).max(50),
  reward_range: z.tuple([finite, finite]).nullable().describe('Smallest and largest total reward of an episode; null if it is not known.'),
});
export type EnvironmentReport = z.infer<typeof environmentReportSchema>;

/** A stored report. The service does not check it: it says what its sender found. */
export const environmentReportViewSchema = environmentReportSchema.extend({
  version: z.int().describe('Number of the version that it is about. Newer versions may have no report yet.'),
  received_at: z.string().describe('When the owner sent it.'),
});
export type EnvironmentReportView = z.infer<typeof environmentReportViewSchema>;

export const environmentReportQuerySchema = z.object({
  version: z.coerce
    .number()
    .int()
    .min(1)
    .max(2_147_483_647)
    .optional()
    .describe('Number of the version that it is about; default: the newest.'),
});
export type EnvironmentReportQuery = z.infer<typeof environmentReportQuerySchema>;
