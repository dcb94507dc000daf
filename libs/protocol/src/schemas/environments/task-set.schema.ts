import { SPLIT_TYPES, TASK_FILE_FORMATS } from '../../vocabularies.ts';
import { z } from 'zod';

// oxlint-disable-next-line no-control-regex -- these are what is refused
export const splitNameSchema = z.string().regex(/^[^\u0000-\u001f/]{1,200}$/, { error: 'a split is named by 1 to 200 characters, no "/"' });

export const splitUploadSchema = z.object({
  format: z.enum(TASK_FILE_FORMATS).default('jsonl').describe('Of the body.'),
  type: z.enum(SPLIT_TYPES).optional().describe('Default: its name if that is a type, else validation.'),
  file: z.string().max(500).optional().describe('Name of the file in error messages.'),
});
export type SplitUpload = z.infer<typeof splitUploadSchema>;

const taskSplitSchema = z.object({
  name: z.string(),
  type: z.enum(SPLIT_TYPES),
  num_tasks: z.number(),
  bytes: z.number().describe('Of the file.'),
  content_hash: z.string().describe('SHA-256 of its tasks in canonical form.'),
});

export const storedSplitSchema = taskSplitSchema.extend({
  ignored_columns: z.array(z.string()).describe('Ignored columns: all except task_spec, prompt and id.'),
});

export const taskSetSchema = z.object({
  id: z.string(),
  state: z.enum(['draft', 'published']),
  content_hash: z.string().nullable().describe('SHA-256 over its splits and tasks in canonical form; null: a draft.'),
  created_at: z.string(),
  published_at: z.string().nullable(),
  versions: z.array(z.number()).describe('Versions of the environment that have these tasks.'),
  splits: z.array(taskSplitSchema),
});
export type TaskSetView = z.output<typeof taskSetSchema>;

export const taskSetListSchema = z.object({ task_sets: z.array(taskSetSchema).describe('Newest first. Drafts only for owners.') });

export const publishedTaskSetSchema = z.object({
  task_set: taskSetSchema,
  version: z.number().describe('The version of the environment that has these tasks.'),
  created: z.boolean().describe('false: the newest version had exactly these tasks already.'),
});
export type PublishedTaskSet = z.output<typeof publishedTaskSetSchema>;

export const deletedDraftSchema = z.object({ deleted: z.literal(true), id: z.string() });
export type TaskSetList = z.output<typeof taskSetListSchema>;
export type TaskSplitView = z.output<typeof taskSplitSchema>;
export type StoredSplitView = z.output<typeof storedSplitSchema>;
