import { PHASES, PROVENANCES, VERIFICATIONS } from '../vocabularies.ts';
import { z } from 'zod';
import { scopeQuery } from './run-curves.schema.ts';

const provenance = z.enum(PROVENANCES);
export const toolListQuerySchema = z.object({ steps: scopeQuery.steps, phase: scopeQuery.phase });
export type ToolListQuery = z.infer<typeof toolListQuerySchema>;

export const toolListSchema = z.object({
  tools: z.array(
    z.object({
      tool: z.string(),
      published: z
        .boolean()
        .nullable()
        .describe(
          'Whether the environments in which it was called publish it; null if none of them is known here. A task may have extra tools.',
        ),
      unpublished_in: z.array(z.string()).describe('Environments in which it was called although they publish no such tool.'),
      rollouts: z.number().describe('Rollouts that called it.'),
      calls: z.number(),
      calls_per_rollout: z.number(),
      errors: z.number().describe('Results that are errors, as uploaded.'),
      error_rate: z.number().nullable(),
      failures: z
        .object({ policy: z.number(), environment: z.number(), infrastructure: z.number() })
        .describe('Latencies of the matched calls, from the ledger.'),
      result_bytes: z.number(),
      latency: z.object({
        p50_ms: z.number().nullable(),
        p95_ms: z.number().nullable(),
        timed: z.number().describe('Calls with a latency in the ledger.'),
        coverage: z.number().nullable().describe('timed / calls: "latency from 97 % of calls".'),
        exact: z.boolean().describe('False: percentiles are those of steps, weighted by their calls.'),
      }),
      reward_used: z.number().nullable().describe('Mean reward of rollouts that used it; a correlation, no cause.'),
      reward_unused: z.number().nullable(),
    }),
  ),
  rollouts: z.number(),
});

export const runConfigSchema = z.object({
  run: z.object({ id: z.string(), name: z.string(), version: z.string(), created_at: z.string(), updated_at: z.string() }),
  ingest: z.object({ accepted: z.number(), duplicates: z.number(), conflicts: z.number(), late: z.number(), nonfinite: z.number() }),
  rollouts: z.number(),
  messages: z.number(),
  bytes: z.number().describe('Messages of the examined rollouts.'),
  gaps: z.number(),
  looked_at: z
    .number()
    .describe('Rollouts behind `provenance`, `sources`, `models`, `verified` and `bytes`: the newest ones, at most 50 000.'),
  provenance: z.record(z.string(), z.record(provenance, z.number())),
  sources: z.record(z.string(), z.number()),
  models: z.record(z.string(), z.number()),
  verified: z.record(z.enum([...VERIFICATIONS, 'not_yet']), z.number()),
  normaliser: z.object({ current: z.number(), rows: z.record(z.string(), z.number()) }),
  settings: z.record(z.string(), z.unknown()),
  inference: z.record(z.string(), z.unknown()).nullable(),
  retention_days: z.number().nullable(),
  success: z.array(
    z.object({ environment: z.string().nullable(), variant: z.string().nullable(), threshold: z.number(), strict: z.boolean() }),
  ),
});

export const runFacetsQuerySchema = z.object({ q: z.string().max(2_000).optional() });
const counted = z.array(z.object({ value: z.string(), count: z.number() }));
const range = z.object({ min: z.number().nullable(), max: z.number().nullable() });
export const runFacetsSchema = z.object({
  total: z.number(),
  total_is: z.enum(['exact', 'at_least']).describe('Counting stops at 10 000: show "10k+".'),
  query: z.string().nullable(),
  approximate: z.boolean().describe('The query has a regex, which the counts ignore.'),
  env: counted,
  split: counted,
  phase: z.array(z.object({ value: z.enum(PHASES), count: z.number() })),
  stop: counted,
  tool: counted.describe('Rollouts that called it.'),
  tool_error: counted.describe('Rollouts in which a call of it failed.'),
  tag: counted,
  model: counted,
  step: range,
  policy_step: range,
  reward: range.extend({
    unscored: z.number(),
    bins: z
      .array(z.object({ from: z.number(), below: z.number(), count: z.number() }))
      .describe('About ten, `from` ≤ reward < `below`; none where all rewards are equal.'),
  }),
  provenance: z.record(z.string(), z.record(provenance, z.number())).describe('Rollouts by the provenance of each field.'),
  errors: z.number().describe('Rollouts with a failed tool result.'),
});

export type ToolList = z.infer<typeof toolListSchema>;
export type RunConfig = z.infer<typeof runConfigSchema>;
export type RunFacets = z.infer<typeof runFacetsSchema>;
