import { z } from 'zod';

/** Query parameters of a page of a list. */
export const pageQuery = {
  limit: z.coerce.number().int().min(1).max(500).default(20),
  offset: z.coerce.number().int().min(0).default(0).describe('Slow far from the start; prefer `cursor`.'),
  cursor: z.string().max(400).optional().describe('`next` of the previous page.'),
};

export const deletedSchema = z.object({ deleted: z.literal(true) });
export type Deleted = z.infer<typeof deletedSchema>;
