import type { MessageType, Phase, Provenance, UnscoredFailure } from '@palestra/protocol';

/** Fields of a message as they are exported; `metadata` is JSON text, so that nothing is lost on the way through. */
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
  /** When the client sent it; for most trainers the moment of the upload (dashboard.md 2.6). */
  sent_at: Date | null;
}

/**
 * One rollout as a row: names are those of the exported columns (narrow-columns.ts says what each means). null = not known, never 0.
 * Fields ending in `_json`-like content (`task_spec`, `metadata`, `rollout_info`, `annotations`) are JSON text.
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
  verdict: 'unverified' | 'partial' | 'verified' | null;
  session_id: string | null;
  metadata: string | null;
  rollout_info: string | null;
  annotations: string | null;
  normaliser_version: number;
  started_at: Date | null;
  received_at: Date;
  last_at: Date;
}

/** The same rollout as the trainer of the export's lens counts it (rolloutOfLens of libs/metrics). */
export interface LensColumns {
  lens_reward: number | null;
  lens_success: boolean | null;
  lens_counted: boolean | null;
}

/** A narrow row of an export; files of the lake, which know no lens, have `NarrowRollout`s. */
export interface ExportedRow extends NarrowRollout, LensColumns {}

export interface ExportedRollout extends ExportedRow {
  messages: ExportedMessage[];
}

/** Stops that say nothing about the policy; their rewards would be learned from as if they did (dashboard.md section 14, 5). */
const NOT_THE_POLICY: ReadonlySet<string> = new Set(['env_error', 'infra_error', 'timeout', 'aborted', 'cancelled']);

/** Whether its reward may be compared with others: scored, and ended by the policy's own doing. */
export function isEffective({ reward, failure, stop }: Pick<NarrowRollout, 'reward' | 'failure' | 'stop'>): boolean {
  return reward !== null && failure === null && !NOT_THE_POLICY.has(stop ?? '');
}

/** GRPO's, over the scored rollouts of the whole group: (r − mean) / (std + 1e-6), std with ddof 1 (dashboard.md 3.1). */
export function advantageOf(reward: number | null, group: { scored: number; mean: number | null; std: number | null }): number | null {
  if (reward === null || group.scored < 2 || group.mean === null || group.std === null) return null;
  return (reward - group.mean) / (group.std + 1e-6);
}
