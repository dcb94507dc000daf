import type { Columns, RolloutColumns } from '@palestra/metrics';
import { STOP_REASONS, UNSCORED_FAILURES } from '@palestra/protocol';
import { wordOf } from '../vocabulary-codes.ts';

/** What the figures of a step read of a rollout, as `rollouts` stores it. */
export interface StoredRollout {
  seq: number;
  envId: number;
  taskId: number | null;
  group: string | null;
  groupSize: number | null;
  reward: number | null;
  rewardPositive: number | null;
  lastReward: number | null;
  rewardSteps: number;
  /** Codes of STOP_REASONS and UNSCORED_FAILURES. */
  stop: number | null;
  failure: number | null;
  turns: number | null;
  toolTurns: number | null;
  messages: number;
  calls: number;
  callErrors: number;
  tokensOut: number | null;
  tokensTool: number | null;
  gaps: number;
  flags: number;
  /** Packed, two bits per field. */
  provenance: number;
  finished: boolean;
  /** Milliseconds since the epoch. */
  receivedAt: number;
}

/** The rollouts of a step by column, in the order of `seq`: what metrics read, and what a rollup stores beside it. */
export interface StepColumns extends RolloutColumns, Columns<Omit<StoredRollout, 'stop' | 'failure'>> {}

export function stepColumns({ stop, failure, ...columns }: Columns<StoredRollout>): StepColumns {
  return {
    ...columns,
    assistantTurns: columns.turns,
    stop: stop.map((code) => wordOf(STOP_REASONS, code)),
    failure: failure.map((code) => wordOf(UNSCORED_FAILURES, code)),
    environment: columns.envId.map(String),
  };
}

/** In each two-bit field the weaker level. */
export function weakerProvenance(one: number, other: number): number {
  if (one === other) return one;
  let result = 0;
  for (let shift = 0; shift < 18; shift += 2) result |= Math.min((one >> shift) & 3, (other >> shift) & 3) << shift;
  return result;
}
