import { LENSES, ROLLOUT_EXPORT_FORMATS } from '../vocabularies.ts';
import { z } from 'zod';
import { arrivalSchema, chosenRolloutsSchema } from './annotation.schema.ts';

export const createRolloutExportSchema = z.object({
  run: z.string().min(1).max(10_240).optional().describe('Name or id; absent = all runs'),
  query: z.string().max(4_000).default('').describe('The query language of the Explorer; empty = everything'),
  rollouts: chosenRolloutsSchema.optional().describe('Ids of chosen rollouts; absent: all rollouts of the query'),
  as_of: arrivalSchema.optional(),
  format: z.enum(ROLLOUT_EXPORT_FORMATS).default('parquet'),
  queue: z
    .uuid()
    .optional()
    .describe(
      'A review queue in place of run and query: its preferences (preference, preference-parquet) or its labels (labels, labels-parquet)',
    ),
  lens: z
    .enum(LENSES)
    .default('canonical')
    .describe('The lens of the columns lens_reward, lens_success and lens_counted; it does not change the other columns'),
  redact: z.boolean().default(false).describe('Replace what looks like a credential'),
  shard_rows: z.int().min(1).max(5_000_000).default(250_000).describe('Maximum rows of a file'),
  shard_bytes: z
    .int()
    .min(1)
    .max(8 * 1024 ** 3)
    .default(256 * 1024 * 1024)
    .describe('A file ends after the row with which it reaches this many bytes'),
});
export type CreateRolloutExport = z.infer<typeof createRolloutExportSchema>;

const counts = z.record(z.string(), z.number());

export const rolloutExportSchema = z.object({
  id: z.string(),
  kind: z.literal('rollouts'),
  state: z.enum(['pending', 'running', 'complete', 'failed']),
  run: z.string().nullable().describe('null: all runs'),
  query: z.string().describe('In its canonical spelling'),
  chosen: z.number().nullable().describe('Rollouts chosen by id; null: all rollouts of the query'),
  format: z.enum(ROLLOUT_EXPORT_FORMATS),
  queue: z.string().nullable().describe('Id of the review queue whose answers it has'),
  lens: z.enum(LENSES),
  redact: z.boolean(),
  total: z.number().nullable().describe('Rollouts of the query; null until counted, and for queries with regexes, pairs and tasks'),
  written: z.number().describe('Rows in finished files'),
  skipped: z.number().describe('Skipped rows: no message of the model, or different prompts'),
  too_large: z
    .array(z.string())
    .describe(
      'Ids of at most 1 000 rollouts that are in no file, because their messages take more than 128 MiB, each with 256 bytes more.',
    ),
  shards: z.number().describe('Finished files of data'),
  bytes: z.number(),
  files: z
    .array(z.object({ name: z.string(), rows: z.number(), size: z.number(), url: z.string().describe('Signed, for an hour') }))
    .describe('Once complete'),
  figures: z
    .object({
      rollouts: z.number(),
      scored: z.number(),
      effective: z.number(),
      reward_mean: z.number().nullable(),
      reward_std: z.number().nullable(),
      environments: counts.describe('By owner/name@version'),
      runs: counts,
      normalisers: counts,
    })
    .nullable()
    .describe('Of the rollouts in finished files; null for tasks'),
  as_of: z.string().describe('Position in the order of arrival; later rollouts are not included'),
  error: z.string().nullable(),
  created_at: z.string(),
  updated_at: z.string(),
  finished_at: z.string().nullable(),
});

export const rolloutExportListSchema = z.object({ exports: z.array(rolloutExportSchema) });
export const cancelledExportSchema = z.object({ deleted: z.boolean() });
export type RolloutExportView = z.infer<typeof rolloutExportSchema>;
export type RolloutExportList = z.infer<typeof rolloutExportListSchema>;
export type CancelledExport = z.infer<typeof cancelledExportSchema>;
/** As a client sends it. */
export type RolloutExportBody = z.input<typeof createRolloutExportSchema>;
