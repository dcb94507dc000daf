import pRetry from 'p-retry';
import { PalestraError } from '@palestra/protocol';
import { ConnectionFailed, type OpenEnvConnection, RETRY, unreachable, withDeadline } from './connection.ts';
import type { KeepAlive } from './keep-alive.ts';
import { SocketBroken, UpgradeRefused, UpstreamSocket } from './socket.ts';
import { endsSession, notOpenEnv, readReply, readRpc, openingError, sessionLost, type WireError } from '../wire/server-replies.ts';

/** The doors of an OpenEnv server: sockets with an environment each, and sessions that sockets attach to (openenv-wire.md 8.2). */

const PASSING = new Set([502, 503, 504]);
/** A step that ran when the connection broke keeps the session's door shut until it ends. */
const OCCUPIED_LIMIT_MS = 30_000;
/** Nobody else can free what a lost answer opened, so its answer is waited for. */
const CREATE_DEADLINE_MS = 120_000;
const CLOSE_DEADLINE_MS = 20_000;

/** Processes of one server that may each have to be asked; which one answers is not ours to choose. */
const MAX_ASKED = 8;

class Occupied extends Error {}

/** The server does not know the session to attach to: it is gone, or another one of the server's processes has it. */
export class UnknownSession extends Error {}

/** Why a socket was not opened, as the caller hears it. */
function refusalOfOpening(error: unknown): unknown {
  if (error instanceof ConnectionFailed) return unreachable(error);
  if (error instanceof UpgradeRefused) {
    return PASSING.has(error.status) ? unreachable(error) : notOpenEnv(`refused a socket (HTTP ${error.status})`, error);
  }
  if (!(error instanceof SocketBroken)) return error;
  if (error.refusal !== null) return error.refusal;
  // A server that is full may close before its refusal is read.
  if (error.closedAtOnce) return new PalestraError('capacity_exhausted', { retryAfterSeconds: 1, cause: error });
  return unreachable(error);
}

/** A socket on which the server has answered: its environment is built, or the session attached (else `UnknownSession`). */
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
    // A server that words its refusal of the fence otherwise has answered, too.
    if (error === null || !endsSession(error)) return socket;
    socket.drop('it refused the session');
    if (upstreamId === null) throw openingError(error);
    if (/already has|still initializing/.test(error.message)) throw new Occupied(error.message);
    if (/unknown session/i.test(error.message)) throw new UnknownSession(error.message);
    throw sessionLost(`the OpenEnv server gave it up (${error.message}).`);
  };
  const passes = (error: unknown) =>
    error instanceof ConnectionFailed ||
    (error instanceof UpgradeRefused && PASSING.has(error.status)) ||
    (error instanceof SocketBroken && !error.closedAtOnce && error.refusal === null);
  try {
    const opened = await pRetry(() => pRetry(attempt, { ...RETRY, signal, shouldRetry: ({ error }) => passes(error) }), {
      retries: 100,
      minTimeout: 100,
      maxTimeout: 1_000,
      maxRetryTime: OCCUPIED_LIMIT_MS,
      signal,
      shouldRetry: ({ error }) => error instanceof Occupied,
    });
    keepAlive.add(opened);
    return opened;
  } catch (error) {
    if (error instanceof Occupied) throw sessionLost('an earlier message is still running on the OpenEnv server.', error);
    throw refusalOfOpening(error);
  }
}

/**
 * Opens a session that a broken socket does not end; its id on the server. One that the server opens for a caller who has left is closed
 * again.
 */
export async function createUpstreamSession(connection: OpenEnvConnection, signal: AbortSignal): Promise<string> {
  signal.throwIfAborted();
  const asking = askForUpstream(connection);
  return new Promise((resolve, reject) => {
    let left = false;
    const onAbort = () => {
      left = true;
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', onAbort, { once: true });
    asking
      .then((id) => (left ? closeUpstreamSession(connection, id).catch(() => {}) : resolve(id)), reject)
      .finally(() => signal.removeEventListener('abort', onAbort));
  });
}

async function askForUpstream(connection: OpenEnvConnection): Promise<string> {
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
    // Nothing but an idle session can be left behind, if anything.
    if (error instanceof ConnectionFailed) throw unreachable(error);
    throw error;
  }
}

/** Idempotent: a session that no process of the server knows is closed. Nothing else frees the slot of such a session. */
export async function closeUpstreamSession(connection: OpenEnvConnection, upstreamId: string): Promise<void> {
  const signal = AbortSignal.timeout(CLOSE_DEADLINE_MS);
  const ask = async () => {
    const response = readRpc(await connection.rpc('openenv/session/close', { session_id: upstreamId }, 'idempotent', signal));
    if (!('error' in response)) return true;
    if (/unknown session/i.test(response.error.message)) return false;
    throw new Error(response.error.message);
  };
  for (let asked = 0; asked < MAX_ASKED; asked += 1) {
    if (await pRetry(ask, { ...RETRY, retries: 5, signal })) return;
  }
}
