import type { ErrorCode, JsonObject } from '@palestra/protocol';
import type { BackendSessionRef } from './backend.port.ts';
import type { FailureClass } from './call-ledger.port.ts';
import type { SessionState } from './state.ts';

/** Why a session failed; thrown again on every later request. */
export interface SessionFailure {
  code: ErrorCode;
  status: number;
  detail: string;
}

/** What is stored of a session. Times are milliseconds since the epoch. Secrets are never part of it. */
export interface SessionRecord {
  sid: string;
  orgId: string;
  userId: string;
  keyId: string | null;
  /** Version of the environment it is pinned to; null until `/create` when the reservation named no deployment. */
  versionId: string | null;
  /** Variant as the client named it, lower case; null = the default one. */
  env: string | null;
  /** What `/create` asked for, without secrets; null while reserved. */
  task: JsonObject | null;
  state: SessionState;
  /** Rises by one with every change; a change based on an older one is refused. */
  version: number;
  /** null until the backend's create succeeded. */
  ref: BackendSessionRef | null;
  failure: SessionFailure | null;
  failureClass: FailureClass | null;
  idleTimeoutMs: number;
  createdAt: number;
  lastSeenAt: number;
  endedAt: number | null;
}

export interface SessionStore {
  find(sid: string): Promise<SessionRecord | null>;
  /** False when the SID is taken. */
  insert(record: SessionRecord): Promise<boolean>;
  /** Writes `record` over version `record.version - 1`; false when that is not the stored one any more. */
  update(record: SessionRecord): Promise<boolean>;
  /** Notes activity; answers the stored version of each, so that the caller sees what others changed. */
  touch(seen: { sid: string; at: number }[]): Promise<{ sid: string; version: number }[]>;
  /** Live sessions whose last activity is longer ago than their idle timeout, at most `limit`. */
  findIdle(now: number, limit: number): Promise<SessionRecord[]>;
  /** Forgets reservations that ended before `before` without ever reaching an environment. */
  purge(before: number): Promise<void>;
}
