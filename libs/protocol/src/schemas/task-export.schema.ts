import { z } from 'zod';
import { MAX_EXCLUDED_KEYS, TASK_FILE_FORMATS, TASK_ROW_FORMATS } from '../vocabularies.ts';

const environment = z.string().regex(/^[^/\s]+\/[^/\s]+$/, { error: 'must be owner/name' });
const split = z.string().min(1).max(200);

export const createTaskExportSchema = z
  .object({
    environments: z.array(environment).min(1).max(50).describe('`owner/name`, in the order of the rows'),
    split: split.default('train'),
    max_tasks: z.int().min(1).optional().describe('Per environment, after all filters'),
    format: z.enum(TASK_FILE_FORMATS).default('parquet'),
    row_format: z
      .enum(TASK_ROW_FORMATS)
      .default('skyrl')
      .describe("Rows as the loader of this trainer reads them (docs/exports.md#tasks). NeMo Gym's are JSON lines only."),
    prompt_format: z
      .enum(['text', 'messages'])
      .default('text')
      .describe(
        "Of SkyRL's rows. `text`: JSON text, byte for byte as SkyRL's script writes it; `messages`: a list, with the facts of the task",
      ),
    min_reward: z
      .number()
      .optional()
      .describe("Least mean reward of the caller's scored rollouts of the task; needs the scope `rollouts`. Leaves out tasks without any"),
    max_reward: z.number().optional().describe('Largest mean reward; otherwise as `min_reward`'),
    min_rollouts: z.int().min(1).optional().describe('At least this many scored rollouts; otherwise as `min_reward`'),
    exclude: z
      .array(z.object({ environment, split }))
      .max(20)
      .default([])
      .describe('Splits of evaluation sets: tasks with the same content are left out. At most 200 000 tasks'),
    exclude_keys: z
      .array(z.string().regex(/^[0-9a-f]{64}$/, { error: 'must be the SHA-256 of a task in hex' }))
      .max(MAX_EXCLUDED_KEYS)
      .default([])
      .describe('`task_key`s to leave out'),
    shuffle_seed: z.int().min(0).max(0xffff_ffff).optional().describe('Shuffles the tasks of all environments. Equal seeds, equal order'),
  })
  .refine(({ format, row_format }) => format !== 'parquet' || row_format !== 'nemo-gym', {
    message: 'NeMo Gym reads JSON lines only: expected jsonl',
    path: ['format'],
  })
  .refine(({ min_reward = -Infinity, max_reward = Infinity }) => min_reward <= max_reward, {
    message: 'expected min_reward <= max_reward',
    path: ['min_reward'],
  });
export type CreateTaskExport = z.infer<typeof createTaskExportSchema>;

export const taskExportSchema = z.object({
  id: z.string(),
  state: z.enum(['running', 'complete', 'failed']),
  environments: z.array(z.string()),
  split: z.string(),
  format: z.enum(TASK_FILE_FORMATS),
  prompt_format: z.enum(['text', 'messages']),
  total: z.number().nullable().describe('Number of tasks to write; null until they are counted'),
  written: z.number(),
  failed: z.number(),
  failures: z
    .array(z.object({ environment: z.string(), task_index: z.number().nullable(), reason: z.string() }))
    .describe('The first failures, with their reasons'),
  error: z.string().nullable().describe('Why the export as a whole failed'),
  size: z.number().nullable().describe('Bytes of the file'),
  download_url: z.string().nullable().describe('Signed, for an hour; null until complete'),
  created_at: z.string(),
  finished_at: z.string().nullable(),
});
export type TaskExportView = z.infer<typeof taskExportSchema>;
/** As a client sends it. */
export type TaskExportBody = z.input<typeof createTaskExportSchema>;
