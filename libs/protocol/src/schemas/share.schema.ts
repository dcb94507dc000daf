import { z } from 'zod';

export const createShareSchema = z.strictObject({
  rollout: z.uuid(),
  message: z.number().int().min(0).max(2_147_483_647).nullable().default(null).describe('Index of the message at which the link opens.'),
  expires_in_days: z.number().int().min(1).max(365).default(30),
});
export type CreateShare = z.infer<typeof createShareSchema>;

const shareSchema = z.object({
  id: z.string(),
  rollout: z.string(),
  message: z.number().nullable(),
  author: z.string(),
  created_at: z.string(),
  expires_at: z.string(),
});
export const createdShareSchema = shareSchema.extend({ url: z.string().describe('The link; shown this once.') });
export const shareListQuerySchema = z.object({ rollout: z.uuid().optional() });
export const shareListSchema = z.object({
  shares: z.array(shareSchema).describe('Those that have not expired; newest first, at most 500.'),
});
export const openShareSchema = z.object({ rollout: z.string(), message: z.number().nullable(), expires_at: z.string() });

/** As a client sends it. */
export type NewShare = z.input<typeof createShareSchema>;
export type Share = z.infer<typeof shareSchema>;
export type ShareList = z.infer<typeof shareListSchema>;
export type CreatedShare = z.infer<typeof createdShareSchema>;
export type OpenShare = z.infer<typeof openShareSchema>;
