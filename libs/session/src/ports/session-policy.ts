/** What an environment's owner decides about its sessions, or what the environment's author declared. Times are milliseconds. */
export interface SessionPolicy {
  /** A session ends after this long without a ping or any other request: its client is gone. */
  heartbeatTimeoutMs: number;
  /** A session ends after this long without a request other than ping: its client lives but has forgotten it. */
  idleTimeoutMs: number;
  /** A constructor or a setup that takes longer has failed; a prompt that is asked for later is waited for as long. */
  setupTimeoutMs: number;
  /** A call that takes longer is given up: its outcome is unknown and the session is lost. */
  callTimeoutMs: number;
  /** Sessions open at the same time on one replica of the environment; null = as many as come. */
  capacity: number | null;
  /** Same task, same calls, same results: a session survives the death of its process by replaying its calls. */
  deterministic: boolean;
  /** Tools that may run again when nobody can know whether they ran. */
  idempotentTools: readonly string[];
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** Silence of 15 minutes is what the reference server takes for a lost client (openreward-wire.md 2.7, rule 5). */
export const defaultSessionPolicy: SessionPolicy = {
  heartbeatTimeoutMs: 15 * MINUTE_MS,
  idleTimeoutMs: 24 * HOUR_MS,
  setupTimeoutMs: 30 * MINUTE_MS,
  callTimeoutMs: 6 * HOUR_MS,
  capacity: null,
  deterministic: false,
  idempotentTools: [],
};

/** A SID that was never used is given up after this; half of a client's attempts to create a session end here. */
export const RESERVATION_TIMEOUT_MS = 5 * MINUTE_MS;
/** One that holds a slot meanwhile keeps somebody else waiting. */
export const ADMITTED_RESERVATION_TIMEOUT_MS = MINUTE_MS;
