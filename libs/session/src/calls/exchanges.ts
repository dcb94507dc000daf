import { isObject, type JsonObject, PalestraError, stringifyJson } from '@palestra/protocol';
import type { SetupGate } from '../lifecycle/setup-gate.ts';
import { type BackendCall, type BackendSession, ToolFailedError } from '../ports/backend.port.ts';
import type { OpenEnvExchange, OpenEnvMessage } from '../ports/openenv.port.ts';
import { errorOfOutcome } from '../registry/failure.ts';
import type { LiveSession } from '../registry/live-session.ts';
import type { SessionRegistry } from '../registry/session-registry.ts';
import type { CallRunner } from './call-runner.ts';

/** Messages of OpenEnv clients to servers that speak OpenEnv. One that changes the episode is a call like any other. */
export class Exchanges {
  constructor(
    readonly registry: SessionRegistry,
    readonly setup: SetupGate,
    readonly calls: CallRunner,
  ) {}

  /** The JSON text of the server's one reply, the session's secrets hidden. */
  async run(live: LiveSession, message: OpenEnvMessage): Promise<string> {
    const acted = actionOf(message);
    try {
      return await (acted === null ? this.#look(live, message) : this.#act(live, message, acted));
    } catch (error) {
      throw this.registry.mask(live).hideInError(error);
    }
  }

  async #look(live: LiveSession, message: OpenEnvMessage): Promise<string> {
    const { reply } = await this.setup.whileWaiting(live, (backend) => send(backend, message, null, live.signal));
    return this.registry.mask(live).hide(reply);
  }

  async #act(live: LiveSession, message: OpenEnvMessage, { tool, input }: Action): Promise<string> {
    let reply: string | null = null;
    const outcome = await this.calls.perform(live, {
      kind: 'call',
      tool,
      input: stringifyJson(input),
      taskId: null,
      run: async (backend, work) => {
        const exchange = await send(backend, message, work, live.signal);
        reply = this.registry.mask(live).hide(exchange.reply);
        if ('failed' in exchange.result) throw new ToolFailedError(exchange.result.failed);
        return exchange.result;
      },
    });
    if (reply !== null) return reply;
    if (outcome.type === 'refused') throw errorOfOutcome(outcome);
    throw new PalestraError('internal_error');
  }
}

type Work = Pick<BackendCall, 'taskId' | 'mayHaveRun'>;

function send(backend: BackendSession, message: OpenEnvMessage, work: Work | null, signal: AbortSignal): Promise<OpenEnvExchange> {
  if (backend.openenv === undefined) throw new PalestraError('backend_invalid');
  return backend.openenv.exchange(message, work, signal);
}

interface Action {
  tool: string;
  input: JsonObject;
}

/** What a message does to the episode, as its trace names it; null for one that only looks. */
function actionOf(message: OpenEnvMessage): Action | null {
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
      if (!isObject(request) || request['method'] !== 'tools/call' || !isObject(request['params'])) return null;
      const { name, arguments: input } = request['params'];
      return typeof name === 'string' ? { tool: name, input: isObject(input) ? input : {} } : null;
    }
    default:
      return null;
  }
}
