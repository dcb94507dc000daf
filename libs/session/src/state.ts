import { ENDED_SESSION_STATES, type SessionState } from '@palestra/protocol';

/**
 * The life of a session:
 * `reserved` (SID given) -> `starting` (constructor, then setup) -> `ready` -> `finished` (an output said so) -> `closed`; or
 * `failed` (setup raised), `expired` (silent), `lost` (what ran it died). A refused create leads back to `reserved`. When the
 * process of a deterministic environment died, `restoring` replays its calls in a fresh one; a replay that does not give the
 * stored results ends as `diverged`.
 */
export const sessionTransitions: Readonly<Record<SessionState, readonly SessionState[]>> = {
  // To itself when it waits for a slot, or gets one.
  reserved: ['reserved', 'starting', 'closed', 'expired', 'lost'],
  // To itself when the constructor has succeeded and setup goes on.
  starting: ['reserved', 'starting', 'ready', 'restoring', 'finished', 'failed', 'closed', 'expired', 'lost'],
  ready: ['restoring', 'finished', 'closed', 'expired', 'lost'],
  // To itself when another process takes the work over.
  restoring: ['restoring', 'ready', 'finished', 'failed', 'closed', 'expired', 'lost', 'diverged'],
  finished: ['restoring', 'closed', 'expired', 'lost'],
  failed: ['closed', 'expired'],
  closed: [],
  expired: [],
  lost: [],
  diverged: [],
};

const DEAD: ReadonlySet<SessionState> = new Set(ENDED_SESSION_STATES);

/** Dead sessions answer 410 for a day, then 404. */
export const isDead = (state: SessionState): boolean => DEAD.has(state);
/** Setup is known to have succeeded. */
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
  /** What only a living session needs. */
  secrets: Uint8Array | null;
  waitingOn: string | null;
}

/** The next version of a record in another state. The store writes it only over the version it was made from. */
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
