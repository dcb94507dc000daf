import { ENDED_SESSION_STATES, type SessionState } from '@palestra/protocol';

/**
 * The states of a session: `reserved` (it has a SID) -> `starting` (constructor, then setup) -> `ready` -> `finished` (a result ended the
 * episode) -> `closed`. Other ends: `failed` (setup raised), `expired` (idle), `lost` (its process died). A refused create leads back to
 * `reserved`. When the process of a deterministic environment died, the session is `restoring` while a new process replays its calls; a
 * replay with other results ends as `diverged`.
 */
export const sessionTransitions: Readonly<Record<SessionState, readonly SessionState[]>> = {
  // To itself when it begins to wait for a slot, or gets one.
  reserved: ['reserved', 'starting', 'closed', 'expired', 'lost'],
  // To itself when the constructor has succeeded and setup continues.
  starting: ['reserved', 'starting', 'ready', 'restoring', 'finished', 'failed', 'closed', 'expired', 'lost'],
  ready: ['restoring', 'finished', 'closed', 'expired', 'lost'],
  // To itself when another process takes over the replay.
  restoring: ['restoring', 'ready', 'finished', 'failed', 'closed', 'expired', 'lost', 'diverged'],
  finished: ['restoring', 'closed', 'expired', 'lost'],
  failed: ['closed', 'expired'],
  closed: [],
  expired: [],
  lost: [],
  diverged: [],
};

const DEAD: ReadonlySet<SessionState> = new Set(ENDED_SESSION_STATES);

/** Requests on dead sessions get 410 for a day, then 404. */
export const isDead = (state: SessionState): boolean => DEAD.has(state);
/** Setup has succeeded. */
export const isSetUp = (state: SessionState): boolean => state === 'ready' || state === 'finished';
export const mayFollow = (from: SessionState, to: SessionState): boolean => sessionTransitions[from].includes(to);

export class InvalidTransitionError extends Error {
  constructor(from: SessionState, to: SessionState) {
    super(`a session cannot go from ${from} to ${to}`);
    this.name = 'InvalidTransitionError';
  }
}

interface Stateful {
  state: SessionState;
  version: number;
  endedAt: number | null;
  /** Cleared when the session dies, like `waitingOn`. */
  secrets: Uint8Array | null;
  waitingOn: string | null;
}

/** The next version of a record, in another state. The store writes it only over the version from which it was derived. Throws `InvalidTransitionError`. */
export function transition<R extends Stateful>(
  record: R,
  to: SessionState,
  now: number,
  patch: Partial<Omit<R, 'state' | 'version' | 'endedAt'>> = {},
): R {
  if (!mayFollow(record.state, to)) throw new InvalidTransitionError(record.state, to);
  const next = { ...record, ...patch, state: to, version: record.version + 1 };
  return isDead(to) ? { ...next, endedAt: now, secrets: null, waitingOn: null } : next;
}
