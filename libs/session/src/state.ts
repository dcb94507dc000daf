/**
 * The life of a session:
 * `reserved` (SID given) -> `starting` (constructor, then setup) -> `ready` -> `finished` (an output said so) -> `closed`; or
 * `failed` (setup raised), `expired` (idle), `lost` (what ran it died). A refused create leads back to `reserved`.
 */
export const sessionStates = ['reserved', 'starting', 'ready', 'finished', 'closed', 'failed', 'expired', 'lost'] as const;
export type SessionState = (typeof sessionStates)[number];

export const sessionTransitions: Readonly<Record<SessionState, readonly SessionState[]>> = {
  reserved: ['starting', 'closed', 'expired'],
  // To itself when the constructor has succeeded and setup goes on.
  starting: ['reserved', 'starting', 'ready', 'finished', 'failed', 'closed', 'expired', 'lost'],
  ready: ['finished', 'closed', 'expired', 'lost'],
  finished: ['closed', 'expired', 'lost'],
  failed: ['closed', 'expired'],
  closed: [],
  expired: [],
  lost: [],
};

/** Dead sessions answer 410 for a day, then 404. */
export const isDead = (state: SessionState): boolean => state === 'closed' || state === 'expired' || state === 'lost';
/** Setup is known to have succeeded. */
export const isSetUp = (state: SessionState): boolean => state === 'ready' || state === 'finished';
export const mayFollow = (from: SessionState, to: SessionState): boolean => sessionTransitions[from].includes(to);

export class InvalidTransitionError extends Error {
  constructor(from: SessionState, to: SessionState) {
    super(`a session cannot go from ${from} to ${to}`);
    this.name = 'InvalidTransitionError';
  }
}

/** The next version of a record in another state. The store writes it only over the version it was made from. */
export function transition<R extends { state: SessionState; version: number; endedAt: number | null }>(
  record: R,
  to: SessionState,
  now: number,
  patch: Partial<Omit<R, 'state' | 'version' | 'endedAt'>> = {},
): R {
  if (!mayFollow(record.state, to)) throw new InvalidTransitionError(record.state, to);
  return { ...record, ...patch, state: to, version: record.version + 1, endedAt: isDead(to) ? now : record.endedAt };
}
