import type { FailureClass } from '@palestra/protocol';
import type { CallOutcome, CallIntent } from './call-ledger.port.ts';
import type { SessionRecord } from './session-store.port.ts';

/** Told of what happens, as it happens, on this process: for metrics, traces, logs and recordings. Must not throw and not block. */
export interface SessionObserver {
  /** A session was stored in another state, or with other facts. `before` is null for a new one. */
  sessionChanged?(record: SessionRecord, before: SessionRecord | null): void;
  callStarted?(call: CallIntent, record: SessionRecord): void;
  /** `ranMs`: from start to end of the tool. `joined`: how many more clients were given this outcome. */
  callEnded?(call: CallIntent, record: SessionRecord, end: { outcome: CallOutcome; failureClass: FailureClass; ranMs: number }): void;
  /** A replay of a deterministic session's calls. */
  restored?(record: SessionRecord, end: { calls: number; tookMs: number; outcome: 'restored' | 'diverged' | 'failed' }): void;
  /** A session got a slot, or did not. */
  admitted?(record: SessionRecord, end: { waitedMs: number; outcome: 'admitted' | 'refused' | 'left' }): void;
}
