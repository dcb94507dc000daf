import { abortable } from '@palestra/kit';
import { PalestraError, stringifyJson } from '@palestra/protocol';
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
    signal.throwIfAborted();
    if (this.#closed) throw new PalestraError('backend_unreachable', { detail: 'the environment has been stopped' });
    try {
      const answer = this.#handlers[method](received(params), signal);
      const result = answer instanceof Promise ? await abortable(answer, signal) : answer;
      // The result of a call is texts and numbers of its own.
      return method === 'call' ? result : received(result);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      throw fromErrorFrame(toErrorFrame(error));
    }
  }

  /** Ends every session. */
  close(): void {
    this.#closed = true;
    void this.#host.close();
  }
}

/** As the other side of a link would read it: plain numbers, plain objects, nothing shared. */
function received<T>(value: T): T {
  return value === null || typeof value !== 'object' ? value : (JSON.parse(stringifyJson(value)) as T);
}
