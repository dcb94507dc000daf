import { z } from 'zod';

/** Limit of files in one upload request (docs/reference/ors.md#rest-endpoints). */
const MAX_FILES = 50;

export const uploadUrlsBodySchema = z.object({
  environmentId: z.string(),
  files: z
    .array(z.object({ fileName: z.string().min(1), contentType: z.string().default('application/octet-stream') }))
    .min(1)
    .max(MAX_FILES),
});
export type UploadUrlsBody = z.infer<typeof uploadUrlsBodySchema>;
export const uploadUrlsSchema = z.object({ urls: z.array(z.object({ fileName: z.string(), uploadUrl: z.string() })) });

export const fileListQuerySchema = z.object({
  limit: z.coerce.number().int().min(1).max(1000).default(200),
  prefix: z.string().optional(),
  pageToken: z.string().optional(),
});
export type FileListQuery = z.infer<typeof fileListQuerySchema>;
export const fileListSchema = z.object({
  files: z.array(z.object({ path: z.string(), size: z.number() })),
  folders: z.array(z.string()),
  nextPageToken: z.string().optional(),
});
export const deletedFilesSchema = z.object({ deletedCount: z.number() });
