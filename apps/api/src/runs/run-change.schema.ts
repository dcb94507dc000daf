import { ROLLOUT_SOURCES } from '@palestra/protocol';
import { z } from 'zod';
import { compileRegex } from '@palestra/query';

const count = (max: number) => z.number().int().min(1).max(max).nullable().optional();
const reward = z.number().nullable().optional();

function isRegex(pattern: string): boolean {
  try {
    compileRegex({ kind: 'regex', pattern, ignoreCase: false, position: 0, length: pattern.length });
    return true;
  } catch {
    return false;
  }
}

/** RunSettings of libs/rollouts; a setting that is absent is found out. */
const runSettingsSchema = z.strictObject({
  nameRegex: z
    .string()
    .max(200)
    .refine(isRegex, 'expected a regex of RE2')
    .nullable()
    .optional()
    .describe('Matched in `rolloutName`; named groups task, step, sample.'),
  n: count(32_767).describe('Samples per prompt.'),
  batchSize: count(1_000_000).describe('Prompts per training step.'),
  maxTurns: count(1_000_000),
  rewardReduce: z.enum(['sum', 'last', 'max', 'mean', 'min']).nullable().optional(),
  nonterminalReward: reward,
  minReward: reward,
  maxReward: reward,
  successThreshold: reward,
  source: z.enum(ROLLOUT_SOURCES).nullable().optional(),
});

export const runChangeSchema = z.strictObject({
  settings: runSettingsSchema
    .optional()
    .describe('All of them: what is left out is found out again. Everything stored is normalised anew.'),
  retention_days: z.number().int().min(1).max(36_500).nullable().optional().describe('null: the organisation’s rule.'),
  tags: z.array(z.string().trim().min(1).max(100)).max(50).optional(),
});
export type RunChangeBody = z.infer<typeof runChangeSchema>;
