import { z } from 'zod';
import { VERIFICATIONS } from '../vocabularies.ts';
import { failureCauseSchema } from './failure.schema.ts';
import { rolloutListQuerySchema, rolloutRowSchema, rolloutViewSchema } from './rollout.schema.ts';

const neighbour = z
  .object({ id: z.string(), step: z.number().nullable(), sample: z.number().nullable(), reward: z.number().nullable() })
  .nullable();
export const rolloutHeaderSchema = rolloutViewSchema.omit({ messages: true }).extend({
  neighbours: z.object({
    previous_sample: neighbour.describe('In its group, by sample.'),
    next_sample: neighbour,
    best_sample: neighbour.describe('Highest reward of the group; null when that is this one.'),
    previous_step: neighbour.describe('The same task at the previous step; the same sample if it exists.'),
    next_step: neighbour,
  }),
  time_kind: z
    .enum(['live', 'upload'])
    .describe('`upload`: message times are those of the upload, and the time between them means nothing.'),
  failure: failureCauseSchema.nullable().describe('Why it failed; null: nothing failed, or not derived yet.'),
});

export const rolloutBesideQuerySchema = rolloutListQuerySchema.pick({ q: true, sort: true, order: true });
export const rolloutBesideSchema = z.object({
  previous: neighbour.describe('Before it in the list; null at its beginning.'),
  next: neighbour.describe('After it; null at the end.'),
  incomplete: z.boolean().describe('A regex had too little time to find one of them.'),
});

export const rolloutOutlineSchema = z.object({
  total: z.number(),
  types: z.array(z.string()).describe('What `type` counts in.'),
  names: z.array(z.string()).describe('What `name` counts in.'),
  index: z.array(z.number()),
  type: z.array(z.number()),
  name: z.array(z.number().nullable()),
  reward: z.array(z.number().nullable()),
  bytes: z.array(z.number()),
  error: z.array(z.number()).describe('1: a failed result. 2: a call that could not be parsed. 4: a nudge.'),
  duration_ms: z.array(z.number().nullable()).describe('Latency of a call from the ledger.'),
  pair: z.array(z.number().nullable()).describe('Position (in these columns) of the call of a result, or of the result of a call.'),
  missing: z.array(z.tuple([z.number(), z.number()])).describe('Ranges of indexes that never arrived.'),
});

export const rolloutCallsSchema = z.object({
  session: z.string().nullable(),
  verified: z.enum(VERIFICATIONS).nullable(),
  latency_ms: z.number().nullable(),
  calls: z.array(
    z.object({
      index: z.number(),
      session: z.string(),
      tool: z.string(),
      duration_ms: z.number().nullable(),
      failure_class: z.string().nullable(),
    }),
  ),
});

export const messageBodyQuerySchema = z.object({
  event: z.uuid().optional().describe('Event id, if several messages have this index.'),
});

export const rolloutDiffQuerySchema = z.object({ a: z.uuid(), b: z.uuid() });
const action = z.object({
  index: z.number(),
  kind: z.enum(['call', 'answer']),
  tool: z.string().nullable(),
  error: z.boolean(),
  reward: z.number().nullable(),
});
export const rolloutDiffSchema = z.object({
  a: rolloutRowSchema,
  b: rolloutRowSchema,
  rows: z
    .array(z.object({ a: action.nullable(), b: action.nullable(), same: z.boolean() }))
    .describe('Actions side by side, aligned by equal tool and arguments.'),
  first_divergence: z.number().nullable().describe('First row that is not the same on both sides.'),
  same: z.number(),
  truncated: z.boolean().describe('Longer rollouts are compared by their first 2 000 actions.'),
});

export type RolloutHeader = z.infer<typeof rolloutHeaderSchema>;
export type RolloutBeside = z.infer<typeof rolloutBesideSchema>;
export type RolloutOutline = z.infer<typeof rolloutOutlineSchema>;
export type RolloutCalls = z.infer<typeof rolloutCallsSchema>;
export type RolloutDiff = z.infer<typeof rolloutDiffSchema>;
