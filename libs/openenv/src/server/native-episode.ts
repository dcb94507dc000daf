import { isObject, type JsonObject, type JsonValue, parseJson, stringifyJson } from '@palestra/protocol';
import type { NativeAction } from '@palestra/session';
import type { OpenEnvMessage } from '../wire/native.ts';
import type { Episode, EpisodeContext } from './episode.port.ts';
import { invalid, issue, OpenEnvError, type OpenEnvErrorCode } from '../wire/errors.ts';
import { RpcError, type RpcRequest } from '../wire/json-rpc.ts';
import type { Reply } from '../wire/client-replies.ts';
import { openSession, reserveSlot } from './open-session.ts';

/** Episodes of an environment whose server speaks OpenEnv. All run in one engine session; messages and replies are passed through. */
export class NativeEpisode implements Episode {
  sid: string | null = null;
  isOpen = false;

  constructor(readonly context: EpisodeContext) {}

  async reserve(): Promise<void> {
    this.sid = this.context.connection.nextSid();
    await reserveSlot(this.context, this.sid);
    // OpenEnv's server builds its environment when a session begins. The process that has the slot opens it.
    const { engine, caller } = this.context;
    if ((await engine.locate(caller, this.sid)).here) await this.#open();
  }

  resume(sid: string, isOpen: boolean): void {
    this.sid = sid;
    this.isOpen = isOpen;
  }

  reset(data: JsonObject): Promise<Reply> {
    return this.#exchange({ type: 'reset', data });
  }

  step(data: JsonObject): Promise<Reply> {
    return this.#exchange({ type: 'step', data });
  }

  state(): Promise<Reply> {
    return this.#exchange({ type: 'state' });
  }

  async rpc({ method, params, id }: RpcRequest): Promise<string> {
    // The environment's server has its own session ids.
    const { session_id: _sessionId, ...rest } = params;
    const data: JsonObject = { jsonrpc: '2.0', method, params: rest, id: parseJson(id) };
    const { text } = await this.#exchange({ type: 'mcp', data });
    const { data: answer } = parseJson(text) as {
      data: { result?: JsonValue; error?: { code: number; message: string; data?: JsonValue } };
    };
    if (answer.error !== undefined) throw new RpcError(answer.error.code, answer.error.message, answer.error.data ?? null);
    return stringifyJson(answer.result ?? null);
  }

  async #exchange(message: OpenEnvMessage): Promise<{ kind: 'frame'; text: string }> {
    if (!this.isOpen) await this.#open();
    const { engine, caller } = this.context;
    const text = await engine.exchange(caller, this.sid!, message, actionOf(message));
    return { kind: 'frame', text: ERROR_FRAME.test(text) ? checkErrorFrame(text) : text };
  }

  async #open(): Promise<void> {
    this.sid ??= this.context.connection.nextSid();
    try {
      this.sid = await openSession(this.context, this.sid, { kind: 'none' });
    } catch (error) {
      this.sid = null;
      throw error;
    }
    this.isOpen = true;
  }

  async end(): Promise<void> {
    const { sid } = this;
    this.sid = null;
    this.isOpen = false;
    if (sid !== null) await this.context.engine.delete(this.context.caller, sid);
  }
}

/** Matches error frames: OpenEnv's servers write the type first. */
const ERROR_FRAME = /^\s*\{\s*"type"\s*:\s*"error"/;
/** OpenEnv's server cannot serialise the error of a custom validator (docs/reference/openenv.md#errors). */
const UNSERIALIZABLE_ERROR = /^Unable to serialize unknown type/;

/** Returns the frame to pass back. Throws an error that ends the session. A refused action does not end it, although its server says so. */
function checkErrorFrame(text: string): string {
  const { type, data } = parseJson(text) as { type: string; data: { message: string; code: OpenEnvErrorCode } & JsonObject };
  if (type !== 'error') return text;
  const { message, code, ...extra } = data;
  const error = new OpenEnvError(code, message, extra);
  if (code === 'SESSION_ERROR' && UNSERIALIZABLE_ERROR.test(message)) {
    return invalid([issue('value_error', [], null, 'Value error, the environment refuses this action')]).frame();
  }
  if (error.ends) throw error;
  return text;
}

/** The call that a message makes, for the ledger and the trace; null for a message that only reads. */
function actionOf(message: OpenEnvMessage): NativeAction | null {
  switch (message.type) {
    case 'reset':
      return { tool: 'reset', input: message.data };
    case 'step': {
      const { type, tool_name: name, arguments: input } = message.data;
      if (type === 'list_tools') return null;
      if (type !== 'call_tool' || typeof name !== 'string') return { tool: 'step', input: message.data };
      return { tool: name, input: isObject(input) ? input : {} };
    }
    case 'mcp': {
      const request = message.data;
      if (!isObject(request) || request['method'] !== 'tools/call') return null;
      const { params } = request;
      if (!isObject(params) || typeof params['name'] !== 'string') return null;
      const { name, arguments: input } = params;
      return { tool: name as string, input: isObject(input) ? input : {} };
    }
    default:
      return null;
  }
}
