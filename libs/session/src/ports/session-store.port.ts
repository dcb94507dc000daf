import type { ErrorCode, FailureClass, JsonObject, SessionState } from '@palestra/protocol';
import type { SlotLimits } from './admission-store.port.ts';
import type { BackendSessionRef } from './backend.port.ts';

/** Why a session failed. Every later request throws it again. */
export interface SessionFailure {
  code: ErrorCode;
  status: number;
  detail: string;
}

/** A stored session. Times are milliseconds since the epoch. */
export interface SessionRecord {
  sid: string;
  orgId: string;
  userId: string;
  keyId: string | null;
  /** The version of the environment to which the session is pinned; null until `/create` when the reservation named no deployment. */
  versionId: string | null;
  /** The variant as the client named it, in lower case; null for the default. */
  env: string | null;
  /** The task of the `/create` request, without secrets; null while reserved. */
  task: JsonObject | null;
  state: SessionState;
  /** Rises by one with every change. The store refuses a change of an older version. */
  version: number;
  /** null until the backend's create succeeded. */
  ref: BackendSessionRef | null;
  failure: SessionFailure | null;
  /** Set when the session has ended or failed. */
  failureClass: FailureClass | null;
  /** `owner/name` of the environment; null like `versionId`. */
  environment: string | null;
  /** The API process that serves the session; null when any process can. */
  ownerReplicaId: string | null;
  /** The API process that wrote this version. */
  writtenBy: string;
  /** Sealed by `SecretBox`; null when there are none and after the session ended. */
  secrets: Uint8Array | null;
  /** Set when the session is recorded as a rollout. */
  recording: Recording | null;
  forkedFrom: string | null;
  /** With how many calls of `forkedFrom` the session began. */
  forkedAtCall: number | null;
  /** When the session first asked for a slot. */
  queuedAt: number | null;
  /** The API process on which the client waits for a slot now. */
  waitingOn: string | null;
  /** The limits that apply to its slot; null until the session asked for one. */
  slotLimits: SlotLimits | null;
  /** The session holds a slot from this time until it ends. */
  admittedAt: number | null;
  heartbeatTimeoutMs: number;
  idleTimeoutMs: number;
  createdAt: number;
  lastSeenAt: number;
  /** As `lastSeenAt`, without pings. */
  lastRequestAt: number;
  endedAt: number | null;
}

export interface SessionActivity {
  sid: string;
  seenAt: number;
  requestAt: number;
}

/** How a session is recorded as a rollout. */
export interface Recording {
  run: string;
  /** Id of the rollout; the service generates it. */
  rolloutId: string;
  name: string | null;
  step: number | null;
  split: string | null;
  taskIndex: number | null;
  metadata: JsonObject | null;
  /** Stop reason of an episode that its client closes before it is over. Without it the reason is unknown. */
  closedStop?: string;
}

export interface SessionStore {
  find(sid: string): Promise<SessionRecord | null>;
  /** False when the SID is taken. */
  insert(record: SessionRecord): Promise<boolean>;
  /** Writes `record` over version `record.version - 1`. False when the stored version is another one. */
  update(record: SessionRecord): Promise<boolean>;
  /** Stores activity. Returns the stored version of each session, so that the caller notices changes by other processes. */
  touch(seen: SessionActivity[]): Promise<{ sid: string; version: number }[]>;
  /** Live sessions without activity for longer than their timeouts, at most `limit`. */
  findIdle(now: number, limit: number): Promise<SessionRecord[]>;
  /** Live sessions whose owner's lease has ended, at most `limit`. */
  findOrphans(limit: number): Promise<SessionRecord[]>;
  /** Live sessions that `replicaId` owns. */
  findOwned(replicaId: string): Promise<SessionRecord[]>;
  /** The client of `/create` did not receive the answer. */
  markCreateUndelivered(sid: string): Promise<void>;
  /** Removes that mark. True when there was one. */
  clearCreateUndelivered(sid: string): Promise<boolean>;
  /** Deletes reservations that ended before `before` and never reached an environment. */
  purge(before: number): Promise<void>;
}
