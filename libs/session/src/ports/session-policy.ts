/** Settings of an environment's sessions, set by its owner or declared by its author. Times are milliseconds. */
export interface SessionPolicy {
  /** A session ends after this long without a ping or any other request: its client has gone. */
  heartbeatTimeoutMs: number;
  /** A session ends after this long without a request other than pings: its client no longer uses it. */
  idleTimeoutMs: number;
  /** A constructor or a setup that takes longer has failed. Also the deadline of a request for the prompt. */
  setupTimeoutMs: number;
  /** A call that takes longer is abandoned: its outcome is unknown and the session is lost. */
  callTimeoutMs: number;
  /** How many sessions may be open at the same time on one replica of the environment. Null: no limit. */
  capacity: number | null;
  /** The same task and calls always give the same results: a session survives the death of its process by a replay of its calls. */
  deterministic: boolean;
  /** Tools that may run again when it is unknown whether they ran. */
  idempotentTools: readonly string[];
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** Like the reference server (docs/reference/ors.md), we consider a client lost after 15 minutes without a request. */
export const defaultSessionPolicy: SessionPolicy = {
  heartbeatTimeoutMs: 15 * MINUTE_MS,
  idleTimeoutMs: 24 * HOUR_MS,
  setupTimeoutMs: 30 * MINUTE_MS,
  callTimeoutMs: 6 * HOUR_MS,
  capacity: null,
  deterministic: false,
  idempotentTools: [],
};

/** A reservation that is not used ends after this long. */
export const RESERVATION_TIMEOUT_MS = 5 * MINUTE_MS;
/** A reservation with a slot ends sooner, because other sessions wait for the slot. */
export const ADMITTED_RESERVATION_TIMEOUT_MS = MINUTE_MS;
