import { z } from 'zod';

export const createTaskExportSchema = z.object({
  environments: z
    .array(z.string().regex(/^[^/\s]+\/[^/\s]+$/, { error: 'must be owner/name' }))
    .min(1)
    .max(50)
    .describe('`owner/name`, in the order of the rows'),
  split: z.string().min(1).max(200).default('train'),
  max_tasks: z.int().min(1).optional().describe('Per environment'),
  format: z.enum(['parquet', 'jsonl']).default('parquet'),
  prompt_format: z.enum(['text', 'messages']).default('text'),
});
export type CreateTaskExport = z.infer<typeof createTaskExportSchema>;

export const taskExportSchema = z.object({
  id: z.string(),
  state: z.enum(['running', 'complete', 'failed']),
  environments: z.array(z.string()),
  split: z.string(),
  format: z.enum(['parquet', 'jsonl']),
  prompt_format: z.enum(['text', 'messages']),
  total: z.number().nullable().describe('null until the tasks were counted'),
  written: z.number(),
  failed: z.number(),
  failures: z
    .array(z.object({ environment: z.string(), task_index: z.number().nullable(), reason: z.string() }))
    .describe('The first failures'),
  error: z.string().nullable(),
  size: z.number().nullable().describe('Bytes'),
  download_url: z.string().nullable().describe('Signed, for an hour'),
  created_at: z.string(),
  finished_at: z.string().nullable(),
});
