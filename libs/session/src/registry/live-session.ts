import { setMaxListeners } from 'node:events';
import { PalestraError } from '@palestra/protocol';
import type { BackendSession } from '../ports/backend.port.ts';
import type { HostedEnvironment } from '../ports/directory.port.ts';
import type { SessionFailure, SessionRecord } from '../ports/session-store.port.ts';
import { SecretMask } from './secrets.ts';

/** A session in the memory of this process: the stored record and state that is not stored. */
export class LiveSession {
  record: SessionRecord;
  /** Aborts when the session dies, with the error that callers get. */
  readonly #abort = new AbortController();
  /** Hides the session's secrets in answers; null until it is needed. */
  mask: SecretMask | null = null;
  hosted: HostedEnvironment | null = null;
  backend: BackendSession | null = null;
  /** Settles with setup. All waiting requests share it. */
  settingUp: Promise<void> | null = null;
  /** Settles with the replay of its calls. All waiting requests share it. */
  restoring: Promise<void> | null = null;
  /** Setup has succeeded, also while that is not stored yet. */
  isSetUp = false;
  runningCalls = 0;
  /** How many requests wait for the environment or its setup, and since when the first of them waits for setup. */
  pendingRequests = 0;
  setupStartedAt: number | null = null;
  /** The environment's constructor runs, or waits until its server has capacity. */
  isOpening = false;
  lastSeenAt: number;
  /** As `lastSeenAt`, without pings. */
  lastRequestAt: number;
  /** When activity was last written to the store. */
  touchedAt: number;
  /** When the environment's server last got a request of the session. */
  upstreamSeenAt: number;
  /** When the ledger last confirmed that this process owns the session; 0 for never. */
  ownershipConfirmedAt = 0;
  /** Changes of one session are stored one after another. */
  writes: Promise<unknown> = Promise.resolve();

  constructor(record: SessionRecord) {
    // Every waiting request adds a listener.
    setMaxListeners(0, this.signal);
    this.record = record;
    this.lastSeenAt = record.lastSeenAt;
    this.lastRequestAt = record.lastRequestAt;
    this.touchedAt = record.lastSeenAt;
    this.upstreamSeenAt = record.lastSeenAt;
  }

  /** The client waits for the environment, so it does not count as idle. Such waits have their own deadlines. */
  get isBusy(): boolean {
    return this.runningCalls > 0 || this.isOpening || this.pendingRequests > 0 || this.restoring !== null;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  die(error: PalestraError): void {
    this.#abort.abort(error);
  }
}

const DAY_MS = 86_400_000;

/** The error of a request on a dead session: 410 for a day, then 404. */
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
