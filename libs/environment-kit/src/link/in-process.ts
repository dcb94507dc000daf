import { abortable } from '@palestra/kit';
import { type JsonObject, PalestraError, stringifyJson } from '@palestra/protocol';
import type { Environment } from '../definition.ts';
import { EnvironmentHost, type HostOptions } from '../host/environment-host.ts';
import { fromErrorFrame, toErrorFrame } from './frames.ts';
import { type Link, type LinkMethod, linkHandlers, type LinkParams, type LinkResult } from './methods.ts';

/**
 * Environments that run in this very process, behind what a link offers: no process, no socket, and of framing only the copy that keeps the two
 * sides' objects apart. What blocks or crashes them does the same to the caller (docs/adr/0022).
 */
export class InProcessLink implements Link {
  readonly #host: EnvironmentHost;
  readonly #handlers: ReturnType<typeof linkHandlers>;
  #closed = false;

  /** The first environment is the default one. */
  constructor(environments: Environment[], options: HostOptions = {}) {
    this.#host = new EnvironmentHost(environments, options);
    this.#handlers = linkHandlers(this.#host, () => !this.#closed);
  }

  /** As over a link: rejects with the signal's reason when it aborts first; a tool that runs goes on. */
  async request<M extends LinkMethod>(method: M, params: LinkParams<M>, signal: AbortSignal): Promise<LinkResult<M>> {
    this.#assertOpen(signal);
    try {
      const answer = this.#handlers[method](received(params), signal);
      return received(answer instanceof Promise ? await abortable(answer, signal) : answer);
    } catch (error) {
      throw crossed(error, signal);
    }
  }

  /** Of its result nothing is shared: it consists of texts and numbers. */
  call({ sid, name, input }: LinkParams<'call'>, signal: AbortSignal): LinkResult<'call'> | Promise<LinkResult<'call'>> {
    try {
      this.#assertOpen(signal);
    } catch (error) {
      return Promise.reject(error as Error);
    }
    const answer = this.#host.call(sid, name, receivedInput(input), signal);
    if (!(answer instanceof Promise)) return answer;
    return abortable(answer, signal).catch((error: unknown) => {
      throw crossed(error, signal);
    });
  }

  #assertOpen(signal: AbortSignal): void {
    signal.throwIfAborted();
    if (this.#closed) throw new PalestraError('backend_unreachable', { detail: 'the environment has been stopped' });
  }

  /** Ends every session. */
  close(): void {
    this.#closed = true;
    void this.#host.close();
  }
}

/** An error as the other side of a link would tell it. */
const crossed = (error: unknown, signal: AbortSignal): Error =>
  signal.aborted ? (signal.reason as Error) : fromErrorFrame(toErrorFrame(error));

/** As `received`. Most inputs are a few texts and numbers, which nobody can change: those need no copy of their own. */
function receivedInput(input: JsonObject): JsonObject {
  for (const key in input) {
    const value = input[key];
    const plain = typeof value === 'string' || typeof value === 'boolean' || value === null || Number.isFinite(value);
    if (!plain) return received(input);
  }
  return { ...input };
}

/** As the other side of a link would read it: plain numbers, plain objects, nothing shared. */
function received<T>(value: T): T {
  return value === null || typeof value !== 'object' ? value : (JSON.parse(stringifyJson(value)) as T);
}
