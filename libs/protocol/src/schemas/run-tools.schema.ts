import { z } from 'zod';
import { scopeQuery } from './run-curves.schema.ts';

export const toolQuerySchema = z.object({
  tool: z.string().min(1).max(4_000).describe('Its name, as it was called.'),
  steps: scopeQuery.steps,
  phase: scopeQuery.phase,
});
export type ToolQuery = z.infer<typeof toolQuerySchema>;

export const toolStepsSchema = z.object({
  tool: z.string(),
  step: z.array(z.number()).describe('Steps with a call; without rollouts of unknown step.'),
  rollouts: z.array(z.number()).describe('Rollouts that called it, at each step.'),
  calls: z.array(z.number()),
  errors: z.array(z.number()).describe('Results that are errors, as uploaded.'),
  result_bytes: z.array(z.number()),
  timed: z.array(z.number()).describe('Calls with a latency in the ledger.'),
  p50_ms: z
    .array(z.number().nullable())
    .describe('Latencies of the timed calls. If a step has several environments, their percentiles are weighted by calls.'),
  p95_ms: z.array(z.number().nullable()),
  unknown_step: z.number().describe('Calls of rollouts whose step is not known.'),
});

export const toolCheckQuerySchema = toolQuerySchema.extend({
  calls: z.coerce.number().int().min(1).max(2_000).default(500).describe('Number of the newest calls to examine.'),
});
export type ToolCheckQuery = z.infer<typeof toolCheckQuerySchema>;
export const toolCheckSchema = z.object({
  tool: z.string(),
  calls: z.number().describe('Examined calls of the newest rollouts.'),
  rollouts: z.number().describe('Rollouts that contain them.'),
  checked: z.number().describe('Calls whose arguments were validated.'),
  valid: z.number(),
  invalid: z.number().describe('Calls with a violation; only the first of each call is counted below.'),
  unparsable: z.number().describe('Invalid calls whose arguments are not a JSON object.'),
  without_schema: z.number().describe('Calls in environments that publish no usable schema of the tool.'),
  unread: z.number().describe('Calls whose arguments are too long to validate here.'),
  violations: z.array(
    z.object({
      path: z.string().describe('JSON pointer into the arguments; empty: the whole.'),
      rule: z.string().describe('Keyword of the schema, or `json`.'),
      message: z.string(),
      count: z.number(),
      examples: z.array(z.object({ rollout: z.string(), index: z.number() })).describe('Newest first.'),
    }),
  ),
  schemas: z.array(z.object({ environment: z.string().nullable(), schema: z.unknown() })).describe('Schemas used, by environment.'),
  incomplete: z.boolean().describe('The time limit was reached before all calls were read.'),
});
export type ToolSteps = z.infer<typeof toolStepsSchema>;
export type ToolCheck = z.infer<typeof toolCheckSchema>;
