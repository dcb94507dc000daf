import type { FailureClass } from '@palestra/protocol';
import type { CallOutcome, CallIntent } from './call-ledger.port.ts';
import type { SessionRecord } from './session-store.port.ts';

/** Receives the events of sessions on this process, for metrics, traces, logs and recordings. Its methods must not throw or block. */
export interface SessionObserver {
  /** A session was stored with changes. `before` is null for a new session. */
  sessionChanged?(record: SessionRecord, before: SessionRecord | null): void;
  callStarted?(call: CallIntent, record: SessionRecord): void;
  /** `ranMs`: from start to end of the tool, milliseconds. */
  callEnded?(call: CallIntent, record: SessionRecord, end: { outcome: CallOutcome; failureClass: FailureClass; ranMs: number }): void;
  /** The calls of a deterministic session were replayed. */
  restored?(record: SessionRecord, end: { calls: number; tookMs: number; outcome: 'restored' | 'diverged' | 'failed' }): void;
  /** A session got a slot, was refused one, or its client left. */
  admitted?(record: SessionRecord, end: { waitedMs: number; outcome: 'admitted' | 'refused' | 'left' }): void;
}
