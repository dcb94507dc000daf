import { z } from 'zod';
import { TASK_FILE_FORMATS } from '../vocabularies.ts';

export const createTaskExportSchema = z.object({
  environments: z
    .array(z.string().regex(/^[^/\s]+\/[^/\s]+$/, { error: 'must be owner/name' }))
    .min(1)
    .max(50)
    .describe('`owner/name`, in the order of the rows'),
  split: z.string().min(1).max(200).default('train'),
  max_tasks: z.int().min(1).optional().describe('Per environment'),
  format: z.enum(TASK_FILE_FORMATS).default('parquet'),
  prompt_format: z.enum(['text', 'messages']).default('text'),
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
