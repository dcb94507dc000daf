import { setMaxListeners } from 'node:events';
import { PalestraError } from '@palestra/protocol';
import type { BackendSession } from '../ports/backend.port.ts';
import type { HostedEnvironment } from '../ports/directory.port.ts';
import type { SessionFailure, SessionRecord } from '../ports/session-store.port.ts';
import { SecretMask } from './secrets.ts';

/** A session as this process holds it: the stored record plus what only makes sense in memory. */
export class LiveSession {
  record: SessionRecord;
  /** Aborts, with the error that callers get, when the session dies. */
  readonly #abort = new AbortController();
  /** Hides the session's secrets in what leaves; null until somebody needed it. */
  mask: SecretMask | null = null;
  hosted: HostedEnvironment | null = null;
  backend: BackendSession | null = null;
  /** Settles when setup has; shared by everybody who waits. */
  settingUp: Promise<void> | null = null;
  /** Settles when its calls have been replayed; shared by everybody who waits. */
  restoring: Promise<void> | null = null;
  /** Setup has succeeded, also when that has not reached the store yet. */
  setUp = false;
  runningCalls = 0;
  /** Requests that wait for what the environment says, or for its setup; and since when the first of them waits for that. */
  asking = 0;
  setupSince: number | null = null;
  /** The environment's constructor runs, or waits for its server to have room. */
  opening = false;
  lastSeenAt: number;
  /** As `lastSeenAt`, pings not counted. */
  lastRequestAt: number;
  /** When the store was last told that the session is alive. */
  touchedAt: number;
  /** When the environment's server last heard of it. */
  upstreamSeenAt: number;
  /** When the ledger last said that its calls are this process's to run; 0 = never yet. */
  confirmedAt = 0;
  /** Changes of one session are stored one after another. */
  writes: Promise<unknown> = Promise.resolve();

  constructor(record: SessionRecord) {
    // Each request that waits listens.
    setMaxListeners(0, this.signal);
    this.record = record;
    this.lastSeenAt = record.lastSeenAt;
    this.lastRequestAt = record.lastRequestAt;
    this.touchedAt = record.lastSeenAt;
    this.upstreamSeenAt = record.lastSeenAt;
  }

  /** Its client waits for the environment, which has deadlines of its own: that is no silence of the client. */
  get isBusy(): boolean {
    return this.runningCalls > 0 || this.opening || this.asking > 0 || this.restoring !== null;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  die(error: PalestraError): void {
    this.#abort.abort(error);
  }
}

const DAY_MS = 86_400_000;

/** What a request on a dead session answers: 410 for a day, 404 from then on. */
export function deathError(record: SessionRecord, now: number): PalestraError {
  if (record.endedAt !== null && now - record.endedAt > DAY_MS) return new PalestraError('session_not_found');
  if (record.state === 'expired') return new PalestraError('session_expired');
  if (record.state === 'closed') return new PalestraError('session_deleted');
  if (record.failure !== null) return failureError(record.failure);
  if (record.state === 'lost') return new PalestraError('session_lost');
  return new PalestraError('session_deleted');
}

export function failureError({ code, status, detail }: SessionFailure): PalestraError {
  return new PalestraError(code, { status, detail });
}

export const TOMBSTONE_MS = DAY_MS;
