import { PalestraError } from '@palestra/protocol';
import type { BackendSession, SecretMap } from './backend.port.ts';
import type { HostedEnvironment } from './directory.port.ts';
import type { SessionRecord } from './session-store.port.ts';

/** A session as this process holds it: the stored record plus what only makes sense in memory. */
export class LiveSession {
  record: SessionRecord;
  /** Aborts, with the error that callers get, when the session dies. */
  readonly #abort = new AbortController();
  /** Secrets sent with the reservation; kept in memory until `/create` has handed them on. */
  secrets: SecretMap | null = null;
  hosted: HostedEnvironment | null = null;
  backend: BackendSession | null = null;
  /** Settles when setup has; shared by everybody who waits. */
  settingUp: Promise<void> | null = null;
  /** Setup has succeeded, also when that has not reached the store yet. */
  setUp = false;
  runningCalls = 0;
  lastSeenAt: number;
  /** When the store was last told that the session is alive. */
  touchedAt: number;
  /** When the environment's server last heard of it. */
  upstreamSeenAt: number;
  /** Changes of one session are stored one after another. */
  writes: Promise<unknown> = Promise.resolve();

  constructor(record: SessionRecord) {
    this.record = record;
    this.lastSeenAt = record.lastSeenAt;
    this.touchedAt = record.lastSeenAt;
    this.upstreamSeenAt = record.lastSeenAt;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  die(error: PalestraError): void {
    this.secrets = null;
    this.#abort.abort(error);
  }
}

const DAY_MS = 86_400_000;

/** What a request on a dead session answers: 410 for a day, 404 from then on. */
export function deathError(record: SessionRecord, now: number): PalestraError {
  if (record.endedAt !== null && now - record.endedAt > DAY_MS) return new PalestraError('session_not_found');
  if (record.state === 'expired') return new PalestraError('session_expired');
  if (record.state === 'lost') return new PalestraError('session_lost');
  return new PalestraError('session_deleted');
}

export const TOMBSTONE_MS = DAY_MS;
