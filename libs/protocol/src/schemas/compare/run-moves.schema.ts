import { PHASES } from '../../vocabularies.ts';
import { scopeQuery } from '../run-curves.schema.ts';
import { z } from 'zod';

/**
 * What can change at a step. `arguments`: calls whose arguments do not fit the schema of their tool. `interrupted` rollouts have no reward, so
 * they explain no change of it.
 */
export const MOVE_CAUSES = [
  'tool_error',
  'arguments',
  'stop',
  'version',
  'environment',
  'tasks',
  'turns',
  'tokens',
  'interrupted',
] as const;

export const runMovesQuerySchema = z.object({
  env: scopeQuery.env,
  phase: scopeQuery.phase,
  step: z.coerce.number().int().min(0).max(2_147_483_647).optional().describe('One step with all its causes, also if it did not move.'),
});
export type RunMovesQuery = z.infer<typeof runMovesQuerySchema>;

const count = z.object({
  rollouts: z.number().describe('Received rollouts with the property.'),
  of: z.number().describe('Received rollouts.'),
});
const calls = z.object({ errors: z.number(), calls: z.number() });
const interval = { low: z.number(), high: z.number() };
const cause = z.object({
  kind: z.enum(MOVE_CAUSES),
  name: z.string().describe('The tool, stop reason, version, environment, or a comparison like `>12`. Empty for tasks.'),
  text: z.string().describe('`accuse failed in 29 of 80 calls; 2 of 400 before`.'),
  detail: z.string().nullable().describe('Of `arguments`: the most frequent violation.'),
  q: z.string().nullable().describe('Query for the rollouts of the step that show it; null: it would be too long.'),
  found: z.number().nullable().describe('How many of them the query finds, if it would be too long for all; null: all.'),
  now: count.nullable().describe('At the step; null for tasks.'),
  before: count.nullable().describe('In the steps of the baseline.'),
  calls: z
    .object({ now: calls, before: calls })
    .nullable()
    .describe('Of the tool. Of `arguments`: checked calls, and those that do not fit.'),
  share: z
    .object({ difference: z.number(), ...interval })
    .nullable()
    .describe('How the share changed, of the rollouts with a reward, with the 95 % interval of Newcombe for effective rollouts.'),
  effect: z.number().nullable().describe('Reward with the property minus without it, in the same step.'),
  contribution: z
    .object({ value: z.number(), ...interval })
    .nullable()
    .describe('The part of the change of the reward that it explains, with a 95 % interval clustered by group. Parts overlap.'),
  explained: z.number().nullable().describe('The same as a share of the change.'),
  separable: z.boolean().describe('False: it holds for all rollouts of the step, so only its time speaks for it.'),
  likely: z.boolean().describe('It explains at least a fifth of the change, and chance is excluded at 5 % over all causes.'),
  example: z
    .object({ rollout: z.string(), index: z.number().nullable().describe('Index of the failing or invalid call.') })
    .nullable()
    .describe('The first rollout of the step that shows it.'),
});
export type MoveCause = z.infer<typeof cause>;

const side = z.object({ groups: z.number(), rollouts: z.number(), mean: z.number() });
const move = z.object({
  step: z.number(),
  baseline: z.object({ from: z.number(), to: z.number(), steps: z.number() }).describe('The steps that it is compared with.'),
  now: side.describe('Rollouts with a reward. A rollout without a group forms a group alone.'),
  before: side,
  difference: z.number(),
  low: z.number().nullable().describe('95 % interval of this one comparison; null: not enough groups.'),
  high: z.number().nullable(),
  p: z.number().nullable().describe('Corrected for the number of compared steps.'),
  moved: z.boolean(),
  text: z.string().describe('`Reward fell by .310 at step 12`.'),
  causes: z.array(cause).describe('What changed at the step, most important first. Without `step` only the likely first cause.'),
  cut: z.boolean().describe('The causes are those of the first 5 000 rollouts of each step.'),
});
export type RunMove = z.infer<typeof move>;

export const runMovesSchema = z.object({
  phase: z.enum(PHASES).nullable(),
  steps: z.number().describe('Compared steps; at most the newest 2 000 of a run.'),
  moves: z.array(move).describe('Steps that moved, ascending; with `step` that step, if it has rewards and steps before it.'),
});
export type RunMoves = z.infer<typeof runMovesSchema>;
