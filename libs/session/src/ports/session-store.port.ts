import type { ErrorCode, FailureClass, JsonObject, SessionState } from '@palestra/protocol';
import type { SlotLimits } from './admission-store.port.ts';
import type { BackendSessionRef } from './backend.port.ts';

/** Why a session failed; thrown again on every later request. */
export interface SessionFailure {
  code: ErrorCode;
  status: number;
  detail: string;
}

/** What is stored of a session. Times are milliseconds since the epoch. */
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
  /** Set when it has ended, or failed. */
  failureClass: FailureClass | null;
  /** `owner/name` of the environment; null like `versionId`. */
  environment: string | null;
  /** The API process that holds its live connection; null where any process can serve it. */
  ownerReplicaId: string | null;
  /** The API process that wrote this version. */
  writtenBy: string;
  /** Sealed by `SecretBox`; null when there are none, and once it has ended. */
  secrets: Uint8Array | null;
  /** Set when the session is to be written as a rollout. */
  recording: Recording | null;
  forkedFrom: string | null;
  /** How many calls of `forkedFrom` it began with. */
  forkedAtCall: number | null;
  /** When it first asked for a slot. */
  queuedAt: number | null;
  /** The API process on which its client waits for a slot right now. */
  waitingOn: string | null;
  /** What its slot must fit into; null until it asked for one. */
  slotLimits: SlotLimits | null;
  /** It holds a slot from here until it ends. */
  admittedAt: number | null;
  heartbeatTimeoutMs: number;
  idleTimeoutMs: number;
  createdAt: number;
  lastSeenAt: number;
  /** As `lastSeenAt`, pings not counted. */
  lastRequestAt: number;
  endedAt: number | null;
}

export interface SessionActivity {
  sid: string;
  seenAt: number;
  requestAt: number;
}

/** How a session is written as a rollout, as its client asked for it. */
export interface Recording {
  run: string;
  /** Id of the rollout; minted by us. */
  rolloutId: string;
  name: string | null;
  step: number | null;
  split: string | null;
  taskIndex: number | null;
  metadata: JsonObject | null;
}

export interface SessionStore {
  find(sid: string): Promise<SessionRecord | null>;
  /** False when the SID is taken. */
  insert(record: SessionRecord): Promise<boolean>;
  /** Writes `record` over version `record.version - 1`; false when that is not the stored one any more. */
  update(record: SessionRecord): Promise<boolean>;
  /** Notes activity; answers the stored version of each, so that the caller sees what others changed. */
  touch(seen: SessionActivity[]): Promise<{ sid: string; version: number }[]>;
  /** Live sessions that were silent for longer than their timeouts allow, at most `limit`. */
  findIdle(now: number, limit: number): Promise<SessionRecord[]>;
  /** Live sessions whose owner is dead, at most `limit`. */
  findOrphans(limit: number): Promise<SessionRecord[]>;
  /** Live sessions that `replicaId` owns. */
  findOwned(replicaId: string): Promise<SessionRecord[]>;
  /** The answer of `/create` broke before its client had read it. */
  noteCreateBroken(sid: string): Promise<void>;
  /** Answers whether it had broken, and that it is healed now. */
  healCreate(sid: string): Promise<boolean>;
  /** Forgets reservations that ended before `before` without ever reaching an environment. */
  purge(before: number): Promise<void>;
}
