import type { MessageType, Phase, Provenance, ProvenanceField, RolloutState, StopReason } from '@palestra/protocol';
import type { RolloutFlag } from './catalogue.ts';

/** A rollout as `matches` reads it. Null is "not known" everywhere. */
export interface QueryRow {
  id: string;
  name: string | null;
  runId: string;
  runName: string;
  env: string | null;
  split: string | null;
  phase: Phase;
  taskKey: string | null;
  taskIndex: number | null;
  /** Decimal: a 64-bit integer is more than a double holds. */
  groupKey: string | null;
  sample: number | null;
  model: string | null;
  step: number | null;
  policyStep: number | null;
  reward: number | null;
  turns: number | null;
  calls: number;
  callErrors: number;
  msgs: number;
  /** Of the model and of tools together. */
  tokens: number | null;
  bytes: number;
  gaps: number;
  durationMs: number | null;
  latencyMs: number | null;
  /** Milliseconds since the epoch. */
  receivedAt: number;
  stop: StopReason;
  state: RolloutState;
  flags: readonly RolloutFlag[];
  /** A field that is left out is unknown. */
  prov: Partial<Record<ProvenanceField, Provenance>>;
  group: QueryGroup | null;
  tags: readonly string[];
  annotations: readonly { verdict: string | null; note: string | null; author: string | null }[];
  /** All messages; a row without them holds no text and no tool (see `needsMessages`). */
  messages: readonly QueryMessage[];
}

export interface QueryGroup {
  n: number;
  nExpected: number | null;
  scored: number;
  /** Successes. */
  successes: number;
  sum: number;
  sumsq: number;
  min: number | null;
  max: number | null;
}

export interface QueryMessage {
  type: MessageType;
  /** Of a call or a result: the tool's. */
  name: string | null;
  failed: boolean;
  content: string | null;
}
