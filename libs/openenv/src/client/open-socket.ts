import pRetry from 'p-retry';
import { PalestraError } from '@palestra/protocol';
import { ConnectionFailed, type OpenEnvConnection, RETRY, TRANSIENT, unreachable, withDeadline } from './connection.ts';
import type { KeepAlive } from './keep-alive.ts';
import { SocketBroken, UpgradeRefused, UpstreamSocket } from './socket.ts';
import { endsSession, notOpenEnv, readReply, readRpc, openingError, sessionLost, type WireError } from '../wire/server-replies.ts';

/** Opens sockets and HTTP sessions of an OpenEnv server (docs/reference/openenv.md#attached-sessions). */

/** A session cannot be attached while the step runs that ran when its connection broke. */
const OCCUPIED_LIMIT_MS = 30_000;
/** The response is awaited, because only its id can free the session. */
const CREATE_DEADLINE_MS = 120_000;
const CLOSE_DEADLINE_MS = 20_000;

/** A server can have several processes, and the request reaches any of them. */
const MAX_PROCESSES = 8;

class SessionOccupied extends Error {}

/** The server does not know the session: it has ended, or another process of the server has it. */
export class UnknownSession extends Error {}

/** The error for a socket that could not be opened. */
function openingFailure(error: unknown): unknown {
  if (error instanceof ConnectionFailed) return unreachable(error);
  if (error instanceof UpgradeRefused) {
    return TRANSIENT.has(error.status) ? unreachable(error) : notOpenEnv(`refused a socket (HTTP ${error.status})`, error);
  }
  if (!(error instanceof SocketBroken)) return error;
  if (error.refusal !== null) return error.refusal;
  // A full server can close before its refusal is read.
  if (error.closedAtOnce) return new PalestraError('capacity_exhausted', { retryAfterSeconds: 1, cause: error });
  return unreachable(error);
}

/**
 * Opens a socket and waits for the first answer of the server: its environment is built or the session attached (else `UnknownSession`).
 */
export async function openSocket(
  connection: OpenEnvConnection,
  keepAlive: KeepAlive,
  upstreamId: string | null,
  signal: AbortSignal,
): Promise<UpstreamSocket> {
  const { socketUrl, headers, outbound } = connection;
  const url = upstreamId === null ? socketUrl : `${socketUrl}?session_id=${encodeURIComponent(upstreamId)}`;
  const attempt = async () => {
    const socket = await UpstreamSocket.open({ url, headers, outbound }, signal);
    const refusal = await socket.fence(signal);
    const error = refusal === null ? null : (readReply(refusal) as WireError);
    // Any other error frame also proves that the server answers.
    if (error === null || !endsSession(error)) return socket;
    socket.drop('it refused the session');
    if (upstreamId === null) throw openingError(error);
    if (/already has|still initializing/.test(error.message)) throw new SessionOccupied(error.message);
    if (/unknown session/i.test(error.message)) throw new UnknownSession(error.message);
    throw sessionLost(`the OpenEnv server gave it up (${error.message}).`);
  };
  const isTransient = (error: unknown) =>
    error instanceof ConnectionFailed ||
    (error instanceof UpgradeRefused && TRANSIENT.has(error.status)) ||
    (error instanceof SocketBroken && !error.closedAtOnce && error.refusal === null);
  try {
    const opened = await pRetry(() => pRetry(attempt, { ...RETRY, signal, shouldRetry: ({ error }) => isTransient(error) }), {
      retries: 100,
      minTimeout: 100,
      maxTimeout: 1_000,
      maxRetryTime: OCCUPIED_LIMIT_MS,
      signal,
      shouldRetry: ({ error }) => error instanceof SessionOccupied,
    });
    keepAlive.add(opened);
    return opened;
  } catch (error) {
    if (error instanceof SessionOccupied) throw sessionLost('an earlier message is still running on the OpenEnv server.', error);
    throw openingFailure(error);
  }
}

/** Opens a session that survives its socket and returns the server's id. If the caller leaves, the session is closed again. */
export async function createUpstreamSession(connection: OpenEnvConnection, signal: AbortSignal): Promise<string> {
  signal.throwIfAborted();
  const creation = requestUpstreamSession(connection);
  return new Promise((resolve, reject) => {
    let left = false;
    const onAbort = () => {
      left = true;
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', onAbort, { once: true });
    creation
      .then((id) => (left ? closeUpstreamSession(connection, id).catch(() => {}) : resolve(id)), reject)
      .finally(() => signal.removeEventListener('abort', onAbort));
  });
}

async function requestUpstreamSession(connection: OpenEnvConnection): Promise<string> {
  try {
    const create = (deadline: AbortSignal) => connection.rpc('openenv/session/create', {}, 'unsent', deadline);
    const response = readRpc(await withDeadline(CREATE_DEADLINE_MS, create));
    if ('error' in response) {
      const { message, data } = response.error;
      if ('active_sessions' in data || /at capacity/.test(message)) {
        throw new PalestraError('capacity_exhausted', { detail: message, retryAfterSeconds: 1, relayed: true });
      }
      throw new PalestraError('environment_failed', { detail: message, relayed: true });
    }
    const id = response.result['session_id'];
    if (typeof id !== 'string' || id === '') throw notOpenEnv('opened a session without an id');
    return id;
  } catch (error) {
    // At most an idle session is left behind.
    if (error instanceof ConnectionFailed) throw unreachable(error);
    throw error;
  }
}

/** Closes such a session, which frees its slot. Idempotent: an unknown session counts as closed. */
export async function closeUpstreamSession(connection: OpenEnvConnection, upstreamId: string): Promise<void> {
  const signal = AbortSignal.timeout(CLOSE_DEADLINE_MS);
  const ask = async () => {
    const response = readRpc(await connection.rpc('openenv/session/close', { session_id: upstreamId }, 'idempotent', signal));
    if (!('error' in response)) return true;
    if (/unknown session/i.test(response.error.message)) return false;
    throw new Error(response.error.message);
  };
  for (let attempt = 0; attempt < MAX_PROCESSES; attempt += 1) {
    if (await pRetry(ask, { ...RETRY, retries: 5, signal })) return;
  }
}
