import { z } from 'zod';

export const savedViewBodySchema = z.object({
  run: z.string().max(2_000).nullable().default(null).describe('Id or name; null: for every run.'),
  name: z.string().trim().min(1).max(200),
  query: z.string().max(2_000).default(''),
  lens: z.string().max(20).nullable().default(null),
  state: z.record(z.string(), z.unknown()).default({}).describe('Columns, sort order and other settings of the page; at most 16 kB.'),
});
export type SavedViewBody = z.infer<typeof savedViewBodySchema>;
export const savedViewSchema = z.object({
  id: z.string(),
  run: z.string().nullable(),
  name: z.string(),
  query: z.string().describe('In its canonical spelling.'),
  lens: z.string().nullable(),
  state: z.record(z.string(), z.unknown()),
  author: z.string(),
  created_at: z.string(),
});
export const savedViewQuerySchema = z.object({
  run: z.string().max(2_000).optional().describe('Id or name. Views for every run are always included.'),
});
export const savedViewListSchema = z.object({ views: z.array(savedViewSchema) });
export type SavedView = z.infer<typeof savedViewSchema>;
export type SavedViewList = z.infer<typeof savedViewListSchema>;
/** As a client sends it. */
export type NewSavedView = z.input<typeof savedViewBodySchema>;
