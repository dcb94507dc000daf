import { isObject, type JsonValue, stringifyJson } from '@palestra/protocol';
import type { OpenEnvMessage } from '../wire/native.ts';
import { ConnectionFailed, type HttpAnswer, type OpenEnvConnection, TRANSIENT, unreachable } from './connection.ts';
import type { KeepAlive } from './keep-alive.ts';
import { changesEpisode, replyFits } from './message.ts';
import type { Transport } from './openenv-session.ts';
import { SocketBroken, type UpstreamSocket } from './socket.ts';
import { closeUpstreamSession, openSocket, UnknownSession } from './open-socket.ts';
import { endsSession, isErrorFrame, readJson, readReply, sessionLost, httpErrorText } from '../wire/server-replies.ts';

/**
 * One socket for one session. With `upstreamId` it is attached to a session that survives the socket: a broken socket is replaced, unless a
 * message that changes the episode was on its way.
 */
export class SocketTransport implements Transport {
  #socket: UpstreamSocket | null;

  constructor(
    readonly connection: OpenEnvConnection,
    readonly keepAlive: KeepAlive,
    readonly upstreamId: string | null,
    socket: UpstreamSocket | null,
  ) {
    this.#socket = socket;
  }

  get resumes(): boolean {
    return this.upstreamId !== null;
  }

  async send(message: OpenEnvMessage, text: string, signal: AbortSignal): Promise<string> {
    for (let attempt = 1; ; attempt += 1) {
      const socket = await this.#open(signal);
      try {
        const reply = await socket.exchange(text, (candidate) => replyFits(message, candidate), signal);
        // The server closes the socket next.
        if (endsConnection(reply)) socket.drop('it ended the session');
        return reply;
      } catch (error) {
        if (!(error instanceof SocketBroken)) throw error;
        if (error.refusal !== null) throw error.refusal;
        const unknown = error.sent && changesEpisode(message);
        if (!this.resumes || unknown || attempt > 1) {
          const outcome = unknown ? ' Its last call may or may not have run.' : '';
          throw sessionLost(`the connection to the OpenEnv server is gone: ${error.message}.${outcome}`, error);
        }
      }
    }
  }

  async close(): Promise<void> {
    const socket = this.#socket;
    this.#socket = null;
    if (socket !== null) {
      this.keepAlive.remove(socket);
      await socket.close();
    }
    if (this.upstreamId !== null) await closeUpstreamSession(this.connection, this.upstreamId);
  }

  async #open(signal: AbortSignal): Promise<UpstreamSocket> {
    if (this.#socket?.isOpen) return this.#socket;
    if (this.#socket !== null) this.keepAlive.remove(this.#socket);
    if (!this.resumes) throw sessionLost('the connection to the OpenEnv server is gone, and the episode with it.');
    try {
      this.#socket = await openSocket(this.connection, this.keepAlive, this.upstreamId, signal);
    } catch (error) {
      throw error instanceof UnknownSession ? sessionLost(`the OpenEnv server no longer has it (${error.message}).`, error) : error;
    }
    return this.#socket;
  }
}

function endsConnection(text: string): boolean {
  if (!isErrorFrame(text)) return false;
  const reply = readReply(text);
  return reply.type === 'error' && endsSession(reply);
}

/** The one episode of a generation A server, over its stateful HTTP routes. Returns frames as newer servers send them. */
export class HttpTransport implements Transport {
  readonly resumes = false;

  constructor(
    readonly connection: OpenEnvConnection,
    readonly onClose: () => void,
  ) {}

  async send(message: OpenEnvMessage, _text: string, signal: AbortSignal): Promise<string> {
    try {
      switch (message.type) {
        case 'reset':
          return frame('observation', await this.#post('/reset', message.data, signal));
        case 'step':
          return frame('observation', await this.#post('/step', { action: message.data }, signal));
        case 'state':
          return frame('state', await this.connection.get('/state', signal));
        case 'mcp':
          return withoutTools(message.data);
      }
    } catch (error) {
      if (!(error instanceof ConnectionFailed)) throw error;
      if (!changesEpisode(message)) throw unreachable(error);
      throw sessionLost(`the connection to the OpenEnv server broke (${error.message}). Its last call may or may not have run.`, error);
    }
  }

  async close(): Promise<void> {
    this.onClose();
  }

  /** A proxy without a server answers 503, and one whose server went away meanwhile 502 or 504. */
  async #post(path: string, body: JsonValue, signal: AbortSignal): Promise<HttpAnswer> {
    const answer = await this.connection.post(path, body, 'unsent', signal);
    if (!TRANSIENT.has(answer.status)) return answer;
    const code = `HTTP ${answer.status}`;
    throw answer.status === 503 ? unreachable(new Error(code)) : new ConnectionFailed({ code });
  }
}

/** Keeps the text of a successful body. */
function frame(type: 'observation' | 'state', { status, body }: HttpAnswer): string {
  const text = body.toString('utf8');
  if (status === 200) return `{"type":"${type}","data":${text}}`;
  if (status !== 422) return error('EXECUTION_ERROR', httpErrorText(status, text), {});
  const detail = readJson(text, 'a refusal');
  return error('VALIDATION_ERROR', 'Invalid message', { errors: isObject(detail) ? detail['detail'] : [] });
}

const error = (code: string, message: string, more: object): string => stringifyJson({ type: 'error', data: { message, code, ...more } });

function withoutTools(request: unknown): string {
  const id = isObject(request) ? (request['id'] ?? null) : null;
  const refusal = { code: -32_603, message: 'Environment does not support MCP', data: null };
  return stringifyJson({ type: 'mcp', data: { jsonrpc: '2.0', id, error: refusal } });
}
