import { advantageOf, isEffective, type NarrowRollout } from '@palestra/exports';
import {
  PHASES,
  type Provenance,
  PROVENANCE_FIELDS,
  type ProvenanceField,
  PROVENANCES,
  STOP_REASONS,
  VERIFICATIONS,
} from '@palestra/protocol';
import { provenanceShift, rolloutFlagNames } from '@palestra/rollouts';
import { failureClassOf, wordOf } from '../store/vocabulary-codes.ts';
import type { DetailRow, GroupReward } from './rollout-export.rows.sql.ts';

const SHIFTS = Object.fromEntries(PROVENANCE_FIELDS.map((field) => [field, provenanceShift(field)])) as Record<ProvenanceField, number>;
const provenance = (packed: number, field: ProvenanceField): Provenance => PROVENANCES[(packed >> SHIFTS[field]) & 3]!;

export const groupId = ({ group_key, phase, step }: Pick<GroupReward, 'phase' | 'step'> & { group_key: string | null }): string =>
  `${group_key} ${phase} ${step}`;

/** The exported columns of a rollout. `group`: the rewards of its group. */
export function narrowRollout(row: DetailRow, org: string, group: GroupReward | undefined): NarrowRollout {
  const prov = (field: ProvenanceField) => provenance(row.provenance, field);
  const { reward } = row;
  const failure = failureClassOf(row);
  const stop = wordOf(STOP_REASONS, row.stop);
  return {
    rollout_id: row.id,
    org,
    run: row.run,
    run_id: row.run_id,
    rollout_name: row.rollout_name,
    source: row.source,
    model: row.model,
    environment: row.environment,
    environment_version: row.environment_version,
    variant: row.variant,
    split: row.split,
    task_key: row.task_key,
    task_index: row.task_index,
    task_spec: row.task_spec,
    phase: wordOf(PHASES, row.phase) ?? 'unknown',
    phase_prov: prov('phase'),
    step: row.step,
    step_prov: prov('step'),
    policy_step: row.policy_step,
    group_key: row.group_key,
    group_prov: prov('group'),
    sample_idx: row.sample_idx,
    sample_prov: prov('sample'),
    reward,
    failure,
    stop,
    reward_prov: prov('reward'),
    reward_reported: row.reward_reported,
    reward_positive: row.reward_positive,
    max_reward: row.reward === null ? null : row.max_reward,
    last_reward: row.last_reward,
    reward_steps: row.reward_steps,
    group_scored: group?.scored ?? null,
    group_mean: group?.mean ?? null,
    group_std: group?.std ?? null,
    advantage: group && isEffective({ reward, failure, stop }) ? advantageOf(reward, group) : null,
    stop_prov: prov('stop'),
    stop_raw: row.stop_raw,
    finished: row.finished,
    turns: row.turns,
    turns_prov: prov('turns'),
    num_messages: row.messages,
    tool_calls: row.calls,
    tool_errors: row.call_errors,
    tokens_out: row.tokens_out,
    tokens_tool: row.tokens_tool,
    tokens_prov: prov('tokens'),
    bytes: Number(row.bytes),
    gaps: row.gaps,
    flags: row.flags === 0 ? [] : rolloutFlagNames(row.flags),
    latency_ms: row.latency_ms,
    telemetry_prov: prov('telemetry'),
    verdict: wordOf(VERIFICATIONS, row.verdict),
    session_id: row.session_id,
    metadata: row.metadata,
    rollout_info: row.rollout_info,
    annotations: row.annotations,
    normaliser_version: row.normaliser,
    started_at: dateOf(row.started_at),
    received_at: row.received_at,
    last_at: row.last_at,
  };
}

const [FIRST_MS, LAST_MS] = [Date.parse('0001-01-01T00:00:00Z'), Date.parse('9999-12-31T23:59:59.999Z')];

/**
 * null for times that Python's datetime cannot represent, because one such value makes its whole file unreadable. Clients send any number.
 */
export function dateOf(milliseconds: number | null): Date | null {
  return milliseconds !== null && milliseconds >= FIRST_MS && milliseconds <= LAST_MS ? new Date(milliseconds) : null;
}
