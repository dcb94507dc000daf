import { type JsonObject, type JsonValue, PalestraError, stringifyJson } from '@palestra/protocol';
import type { SetupGate } from '../lifecycle/setup-gate.ts';
import { ToolFailedError } from '../ports/backend-call.ts';
import type { BackendSession } from '../ports/backend.port.ts';
import type { NativeAction, NativeMessage, NativeSession } from '../ports/native.port.ts';
import { errorOfOutcome } from '../registry/failure.ts';
import type { LiveSession } from '../registry/live-session.ts';
import type { SessionRegistry } from '../registry/session-registry.ts';
import type { CallRunner } from './call-runner.ts';

/** Passes messages of clients through to a server that speaks their protocol. A message that acts on the episode is a call in the ledger. */
export class Exchanges {
  constructor(
    readonly registry: SessionRegistry,
    readonly setup: SetupGate,
    readonly calls: CallRunner,
  ) {}

  /** The JSON text of the server's one reply, without the session's secrets. `action`: what the message does; null if it only reads. */
  async run(live: LiveSession, message: NativeMessage, action: NativeAction | null): Promise<string> {
    try {
      return await (action === null ? this.#read(live, message) : this.#act(live, message, action));
    } catch (error) {
      throw this.registry.mask(live).hideInError(error);
    }
  }

  async state(live: LiveSession): Promise<JsonObject> {
    const mask = this.registry.mask(live);
    try {
      const state: JsonValue = await this.setup.runOnBackend(live, (backend) => nativeOf(backend).state(live.signal));
      return mask.hideIn(state) as JsonObject;
    } catch (error) {
      throw mask.hideInError(error);
    }
  }

  async #read(live: LiveSession, message: NativeMessage): Promise<string> {
    const { reply } = await this.setup.runOnBackend(live, (backend) => nativeOf(backend).exchange(message, null, live.signal));
    return this.registry.mask(live).hide(reply);
  }

  async #act(live: LiveSession, message: NativeMessage, { tool, input }: NativeAction): Promise<string> {
    let reply: string | null = null;
    const outcome = await this.calls.perform(live, {
      kind: 'call',
      tool,
      input: stringifyJson(input),
      taskId: null,
      run: async (backend, call) => {
        const answer = await nativeOf(backend).exchange(message, call, live.signal);
        reply = this.registry.mask(live).hide(answer.reply);
        if ('failed' in answer.result) throw new ToolFailedError(answer.result.failed);
        return answer.result;
      },
    });
    if (reply !== null) return reply;
    if (outcome.type === 'refused') throw errorOfOutcome(outcome);
    throw new PalestraError('internal_error');
  }
}

function nativeOf({ native }: BackendSession): NativeSession {
  if (native === undefined) throw new PalestraError('backend_invalid');
  return native;
}
