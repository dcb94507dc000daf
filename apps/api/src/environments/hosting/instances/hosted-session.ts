import { abortable } from '@palestra/kit';
import { PalestraError } from '@palestra/protocol';
import { forwardedSession } from '@palestra/openenv/client';
import { type BackendCall, type BackendSession, type NativeSession, type ToolCallResult, ToolFailedError } from '@palestra/session';
import type { InstanceConnection } from './instance-connections.ts';

/** Errors after which the instance may be gone, and how long they wait until that is known, milliseconds. */
const DOUBTFUL = new Map([
  ['backend_unreachable', 3_000],
  ['backend_timeout', 1_000],
  ['session_lost', 1_000],
]);

/**
 * How long a request that certainly did not run is sent again. The process that finds out whether the instance is gone may be starting
 * again itself.
 */
const UNREACHABLE_MS = 30_000;

/** Finds the instance of a session. */
export interface SessionInstance {
  /** Null while this process does not use it yet. Throws `session_lost`. */
  known(): InstanceConnection | null;
  find(): Promise<InstanceConnection>;
}

/**
 * An episode on an instance. Every method is that of the instance's own backend, and ends with `session_lost` as soon as the instance is
 * known to be gone.
 */
export class HostedSession implements BackendSession {
  declare readonly ready?: (signal: AbortSignal) => Promise<void>;
  declare readonly native?: NativeSession;
  readonly #instance: SessionInstance;
  readonly #open: (connection: InstanceConnection) => BackendSession;
  #current: { connection: InstanceConnection; session: BackendSession } | null = null;

  /** `open`: the session on the instance's backend; does no I/O. `has`: which optional parts that one has. */
  constructor(
    instance: SessionInstance,
    open: (connection: InstanceConnection) => BackendSession,
    has: { ready: boolean; native: boolean },
  ) {
    this.#instance = instance;
    this.#open = open;
    if (has.ready) this.ready = (signal) => this.#run((session) => session.ready!(signal));
    if (has.native) this.native = forwardedSession((ask) => this.#run(ask));
  }

  prompt(signal: AbortSignal) {
    return this.#run((session) => session.prompt(signal));
  }
  messages(signal: AbortSignal) {
    return this.#run((session) => session.messages(signal));
  }
  taskTools(signal: AbortSignal) {
    return this.#run((session) => session.taskTools(signal));
  }
  call(request: BackendCall, signal: AbortSignal): Promise<ToolCallResult> {
    return this.#run(async (session) => session.call(request, signal));
  }
  scoreGroup(...parameters: Parameters<BackendSession['scoreGroup']>) {
    return this.#run((session) => session.scoreGroup(...parameters));
  }
  ping(signal: AbortSignal) {
    return this.#run((session) => session.ping(signal));
  }

  /** The episode of an instance that is gone has ended. */
  async delete(signal: AbortSignal): Promise<void> {
    await this.#run((session) => session.delete(signal)).catch((error: unknown) => {
      if (!(error instanceof PalestraError) || error.code !== 'session_lost') throw error;
    });
  }

  async #run<T>(ask: (session: BackendSession) => Promise<T>): Promise<T> {
    const { connection, session } = this.#current ?? this.#use(this.#instance.known() ?? (await this.#instance.find()));
    const until = performance.now() + UNREACHABLE_MS;
    for (;;) {
      try {
        return await abortable(ask(session), connection.gone);
      } catch (error) {
        // A tool that raised has run to its end.
        if (error instanceof ToolFailedError) throw error;
        const code = error instanceof PalestraError ? error.code : '';
        const verdictMs = DOUBTFUL.get(code) ?? 0;
        if (connection.gone.aborted || (verdictMs > 0 && (await connection.endsWithin(verdictMs)))) throw connection.gone.reason;
        if (code !== 'backend_unreachable' || performance.now() >= until) throw error;
      }
    }
  }

  #use(connection: InstanceConnection) {
    return (this.#current = { connection, session: this.#open(connection) });
  }
}
