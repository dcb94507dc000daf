import { z } from 'zod';
import { SHARE_KINDS } from '../vocabularies.ts';

const TARGETS = ['rollout', 'rollouts', 'run', 'runs'] as const;
const run = z.string().min(1).max(512);

export const createShareSchema = z
  .strictObject({
    rollout: z.uuid().optional().describe('One rollout.'),
    rollouts: z.array(z.uuid()).min(2).max(4).optional().describe('The comparison of these rollouts.'),
    run: run.optional().describe('The overview of a run, by id or name; with `q`, its rollouts that match.'),
    runs: z.array(run).min(2).max(4).optional().describe('The comparison of these runs, by id or name.'),
    q: z.string().max(2_000).optional().describe('Only with `run`: a list of the rollouts that match whenever the link is read.'),
    with_rollouts: z
      .boolean()
      .default(false)
      .describe('Only with `run`: the link also opens every rollout of the run, or every rollout that matches `q`.'),
    message: z
      .number()
      .int()
      .min(0)
      .max(2_147_483_647)
      .nullable()
      .default(null)
      .describe('Only with `rollout`: index of the message at which the link opens.'),
    expires_in_days: z.number().int().min(1).max(365).default(30),
  })
  .refine((body) => TARGETS.filter((target) => body[target] !== undefined).length === 1, {
    message: 'expected exactly one of rollout, rollouts, run, runs',
  })
  .refine(({ run: of, q, with_rollouts }) => of !== undefined || (q === undefined && !with_rollouts), {
    message: 'q and with_rollouts need run',
  })
  .refine(({ rollout, message }) => rollout !== undefined || message === null, { message: 'message needs rollout' })
  .refine(({ runs = [], rollouts = [] }) => [runs, rollouts].every((list) => new Set(list).size === list.length), {
    message: 'expected different runs or rollouts',
  });
export type CreateShare = z.infer<typeof createShareSchema>;

const scope = {
  kind: z.enum(SHARE_KINDS),
  rollouts: z.array(z.string()).describe('Ids of the shared rollouts: one, or those of a comparison.'),
  runs: z.array(z.object({ id: z.string(), name: z.string() })).describe('The run, or the runs of a comparison.'),
  q: z.string().nullable().describe('The query of a shared list.'),
  with_rollouts: z.boolean().describe('The link also opens the rollouts of the run or of the list.'),
  message: z.number().nullable(),
  path: z.string().describe('Address of the page that shows it.'),
  expires_at: z.string(),
};
const shareSchema = z.object({ id: z.string(), ...scope, author: z.string(), created_at: z.string() });
export const createdShareSchema = shareSchema.extend({ url: z.string().describe('The link; shown this once.') });
export const shareListQuerySchema = z.object({
  rollout: z.uuid().optional().describe('Links that name this rollout.'),
  run: z.uuid().optional().describe('Links that name this run, by id.'),
});
export const shareListSchema = z.object({
  shares: z.array(shareSchema).describe('Those that have not expired; newest first, at most 500.'),
});
export const openShareSchema = z.object({ ...scope, org: z.string().describe('Name of the organisation that shares it.') });

/** As a client sends it. */
export type NewShare = z.input<typeof createShareSchema>;
export type Share = z.infer<typeof shareSchema>;
export type ShareList = z.infer<typeof shareListSchema>;
export type CreatedShare = z.infer<typeof createdShareSchema>;
export type OpenShare = z.infer<typeof openShareSchema>;
