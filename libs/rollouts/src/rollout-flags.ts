/** Anomalies of a rollout, one bit each. Numbers are stored: append only. */
export const ROLLOUT_FLAGS = {
  /** The reported total differs from the one computed from the messages by more than 1e-6. */
  reward_mismatch: 1,
  /** Several events of a turn carry one reward; it counts once (reward.ts). */
  stamped_turn: 2,
  nonfinite: 4,
  parse_error: 8,
  /** A tool result whose call was not uploaded. */
  orphan_result: 16,
  subagent: 32,
  has_image: 64,
  has_reasoning: 128,
  env_error: 256,
  infra_error: 512,
  /** At least one tool result is an error. */
  tool_error: 1024,
  gap: 2048,
  nudge: 4096,
  /** It continues another rollout (`resumed_from_rollout_id`). */
  resumed: 8192,
  /** Sessions of several tasks match, and the upload does not name its task. */
  ambiguous_task: 16_384,
} as const;
export type RolloutFlag = keyof typeof ROLLOUT_FLAGS;

export const rolloutFlagNames = (flags: number): RolloutFlag[] =>
  (Object.keys(ROLLOUT_FLAGS) as RolloutFlag[]).filter((name) => (flags & ROLLOUT_FLAGS[name]) !== 0);
