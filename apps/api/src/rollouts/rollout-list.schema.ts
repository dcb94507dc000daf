import { z } from 'zod';
import { pageQuery } from '../platform/http/cursor.ts';
import { rolloutRowSchema } from './rollout.schema.ts';

export const rolloutListQuerySchema = z.object({
  ...pageQuery,
  sort: z.enum(['created_at', 'reward', 'step', 'task', 'turns', 'messages']).default('created_at'),
  order: z.enum(['asc', 'desc']).default('desc'),
  q: z.string().max(2_000).optional().describe('The query language of rollouts: docs/query.md.'),
});
export type RolloutListQuery = z.infer<typeof rolloutListQuerySchema>;

export const rolloutListSchema = z.object({
  rollouts: z.array(rolloutRowSchema),
  total: z.number(),
  total_is: z.enum(['exact', 'at_least']),
  next: z.string().nullable(),
  query: z.string().nullable().describe('The query in its canonical spelling.'),
});
