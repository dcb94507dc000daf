import type { MessageType, Phase, Provenance, ProvenanceField, RolloutState, StopReason } from '@palestra/protocol';
import type { RolloutFlag } from './catalogue.ts';

/** A rollout as `matches` reads it. null means "not known". */
export interface QueryRow {
  id: string;
  name: string | null;
  runId: string;
  runName: string;
  env: string | null;
  /** Of the session, else as uploaded. */
  envVersion: string | null;
  split: string | null;
  phase: Phase;
  taskKey: string | null;
  taskIndex: number | null;
  /** Decimal digits, because a double cannot hold every 64-bit integer. */
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
  /** Output of the model and of tools together. */
  tokens: number | null;
  bytes: number;
  gaps: number;
  durationMs: number | null;
  latencyMs: number | null;
  /** Milliseconds since the epoch. */
  receivedAt: number;
  stop: StopReason;
  /** Fingerprint of the cause of its failure (libs/rollouts); null: nothing failed. */
  cause: string | null;
  state: RolloutState;
  flags: readonly RolloutFlag[];
  /** An absent field is unknown. */
  prov: Partial<Record<ProvenanceField, Provenance>>;
  group: QueryGroup | null;
  tags: readonly string[];
  annotations: readonly { verdict: string | null; note: string | null; author: string | null }[];
  /** All messages. Empty if they were not loaded; then texts and tools do not match (see `needsMessages`). */
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
  /** Name of the tool of a call or a result. */
  name: string | null;
  failed: boolean;
  content: string | null;
}
