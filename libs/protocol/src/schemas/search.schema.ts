import { z } from 'zod';

export const searchQuerySchema = z.object({
  q: z.string().min(1).max(1_000).describe('Consecutive words of one message, or a regex (RE2, at most 200 characters).'),
  mode: z.enum(['text', 'regex']).default('text'),
  within: z.string().max(2_000).optional().describe('Only rollouts of this query: docs/query.md.'),
  limit: z.coerce.number().int().min(1).max(100).default(20),
  cursor: z.string().max(400).optional(),
});
export type SearchQuery = z.infer<typeof searchQuerySchema>;

const hit = z.object({
  run: z.object({ id: z.string(), name: z.string() }),
  rollout: z.string(),
  rollout_name: z.string().nullable(),
  step: z.number().nullable(),
  reward: z.number().nullable(),
  index: z.number().describe('Of the message.'),
  type: z.string(),
  name: z.string().nullable(),
  snippet: z.string(),
  matches: z.array(z.tuple([z.number(), z.number()])).describe('Start and end in the snippet, UTF-16.'),
  offset: z.number().describe('Start of the snippet in the content, UTF-16.'),
});
export const searchSchema = z.object({
  hits: z.array(hit),
  next: z
    .string()
    .nullable()
    .describe('A page may have fewer hits than requested, or none, and still have a next page, if the time limit was reached.'),
  steps: z
    .array(z.object({ step: z.number().nullable(), hits: z.number() }))
    .nullable()
    .describe('Matching messages by step; on the first page of a text search.'),
  steps_capped: z.boolean().describe('The counts are incomplete: counting stops after 10 000 messages or a time limit.'),
  pending: z.boolean().describe('Some new rollouts are not searchable yet; they will be within seconds.'),
  query: z.string().nullable().describe('`within` in its canonical spelling.'),
  incomplete: z.boolean(),
  progress: z
    .object({ rollouts: z.number(), of: z.number() })
    .optional()
    .describe('How many rollouts this search for a regex has looked at, all pages up to this one together, and how many there are.'),
});
export type SearchPage = z.infer<typeof searchSchema>;
