import {
  INTERRUPTED_STOPS,
  type MessageType,
  type Phase,
  type Provenance,
  type UnscoredFailure,
  type Verification,
} from '@palestra/protocol';

/** Exported fields of a message. `metadata` is JSON text, so that nothing is lost. */
export interface ExportedMessage {
  index: number;
  type: MessageType;
  content: string | null;
  summary: string | null;
  content_reference: string | null;
  name: string | null;
  call_id: string | null;
  reward: number | null;
  is_finished: boolean;
  metadata: string | null;
  /** Client timestamp; for most trainers the time of the upload (docs/reference/metrics.md#messages). */
  sent_at: Date | null;
}

/**
 * A rollout as a row. Names are those of the exported columns (narrow-columns.ts describes them). null means not known, never 0.
 * `task_spec`, `metadata`, `rollout_info` and `annotations` are JSON text.
 */
export interface NarrowRollout {
  rollout_id: string;
  org: string;
  run: string;
  run_id: string;
  rollout_name: string | null;
  source: string | null;
  model: string | null;
  environment: string | null;
  environment_version: string | null;
  variant: string | null;
  split: string | null;
  task_key: string | null;
  task_index: number | null;
  task_spec: string | null;
  phase: Phase;
  phase_prov: Provenance;
  step: number | null;
  step_prov: Provenance;
  policy_step: number | null;
  group_key: string | null;
  group_prov: Provenance;
  sample_idx: number | null;
  sample_prov: Provenance;
  reward: number | null;
  reward_prov: Provenance;
  reward_reported: number | null;
  reward_positive: number | null;
  max_reward: number | null;
  last_reward: number | null;
  reward_steps: number;
  group_scored: number | null;
  group_mean: number | null;
  group_std: number | null;
  advantage: number | null;
  stop: string | null;
  stop_prov: Provenance;
  stop_raw: string | null;
  failure: UnscoredFailure | null;
  finished: boolean;
  turns: number | null;
  turns_prov: Provenance;
  num_messages: number;
  tool_calls: number;
  tool_errors: number;
  tokens_out: number | null;
  tokens_tool: number | null;
  tokens_prov: Provenance;
  bytes: number;
  gaps: number;
  flags: string[];
  latency_ms: number | null;
  telemetry_prov: Provenance;
  verdict: Verification | null;
  session_id: string | null;
  metadata: string | null;
  rollout_info: string | null;
  annotations: string | null;
  normaliser_version: number;
  started_at: Date | null;
  received_at: Date;
  last_at: Date;
}

/** The rollout as the lens of the export counts it (rolloutOfLens of libs/metrics). */
export interface LensColumns {
  lens_reward: number | null;
  lens_success: boolean | null;
  lens_counted: boolean | null;
}

/** A row of an export without messages. Files of the lake, which has no lens, contain `NarrowRollout`s. */
export interface ExportedRow extends NarrowRollout, LensColumns {}

export interface ExportedRollout extends ExportedRow {
  messages: ExportedMessage[];
}

const INTERRUPTED: ReadonlySet<string> = new Set(INTERRUPTED_STOPS);

/** Whether the reward is comparable with others: scored, and ended by the policy itself (docs/reference/metrics.md#denominators). */
export function isEffective({ reward, failure, stop }: Pick<NarrowRollout, 'reward' | 'failure' | 'stop'>): boolean {
  return reward !== null && failure === null && !INTERRUPTED.has(stop ?? '');
}

/**
 * GRPO's advantage over the scored rollouts of the whole group: (r − mean) / (std + 1e-6) with ddof 1
 * (docs/reference/metrics.md#canonical-metrics).
 */
export function advantageOf(reward: number | null, group: { scored: number; mean: number | null; std: number | null }): number | null {
  if (reward === null || group.scored < 2 || group.mean === null || group.std === null) return null;
  return (reward - group.mean) / (group.std + 1e-6);
}
