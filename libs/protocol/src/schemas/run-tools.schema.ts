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
  step: z.array(z.number()).describe('Steps at which it was called; rollouts whose step is not known are left out.'),
  rollouts: z.array(z.number()).describe('That called it, at each step.'),
  calls: z.array(z.number()),
  errors: z.array(z.number()).describe('Results that are errors, as uploaded.'),
  result_bytes: z.array(z.number()),
  timed: z.array(z.number()).describe('Calls whose true latency is known.'),
  p50_ms: z
    .array(z.number().nullable())
    .describe('Of the timed calls; where a step has several environments, their percentiles weighted by calls.'),
  p95_ms: z.array(z.number().nullable()),
  unknown_step: z.number().describe('Calls of rollouts whose step is not known.'),
});

export const toolCheckQuerySchema = toolQuerySchema.extend({
  calls: z.coerce.number().int().min(1).max(2_000).default(500).describe('Newest calls that are looked at.'),
});
export type ToolCheckQuery = z.infer<typeof toolCheckQuerySchema>;
export const toolCheckSchema = z.object({
  tool: z.string(),
  calls: z.number().describe('Calls of the newest rollouts that were looked at.'),
  rollouts: z.number().describe('That hold them.'),
  checked: z.number().describe('Calls whose arguments were held against a schema.'),
  valid: z.number(),
  invalid: z.number().describe('Calls with a violation; only the first of each call is counted below.'),
  unparsable: z.number().describe('Among the invalid ones: arguments that are no JSON object.'),
  without_schema: z.number().describe('Calls in environments that publish no usable schema of the tool.'),
  unread: z.number().describe('Calls whose arguments are too long to be looked at here.'),
  violations: z.array(
    z.object({
      path: z.string().describe('Where in the arguments, as a JSON pointer; empty for the whole.'),
      rule: z.string().describe('Keyword of the schema, or `json`.'),
      message: z.string(),
      count: z.number(),
      examples: z.array(z.object({ rollout: z.string(), index: z.number() })).describe('Newest first.'),
    }),
  ),
  schemas: z.array(z.object({ environment: z.string().nullable(), schema: z.unknown() })).describe('Held against, by environment.'),
  incomplete: z.boolean().describe('Time ran out before so many calls were read.'),
});
export type ToolSteps = z.infer<typeof toolStepsSchema>;
export type ToolCheck = z.infer<typeof toolCheckSchema>;
