import { z } from 'zod';

/** At most this many files an upload request (openreward-wire.md 3.1). */
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
