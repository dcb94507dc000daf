import { newUuid } from '@palestra/kit';
import { PalestraError } from '@palestra/protocol';
import type { Backend, BackendCreate, BackendSession, BackendSessionRef } from '@palestra/session';

/** The backend of one run of a process. Its id is part of every session reference. */
interface ProcessRun {
  id: string;
  backend: Backend;
}

const starting = () => new PalestraError('environment_starting', { retryAfterSeconds: 1, backendStarting: true });

/**
 * The backend of a process that may die and restart. Requests go to the running process. Sessions belong to the process that opened them
 * and are lost with it. While none runs, requests fail with `environment_starting`, which means that they were not executed.
 */
export class RestartableBackend implements Backend {
  #run: ProcessRun | null = null;
  readonly #unavailable: () => PalestraError;

  /** `unavailable`: the error while no process runs. */
  constructor(unavailable: () => PalestraError = starting) {
    this.#unavailable = unavailable;
  }

  /** Switches to a new process. */
  attach(backend: Backend): void {
    const previous = this.#run;
    this.#run = { id: newUuid(), backend };
    void previous?.backend.close();
  }

  /** The process has ended. */
  detach(): void {
    const previous = this.#run;
    this.#run = null;
    void previous?.backend.close();
  }

  async environments(signal: AbortSignal) {
    return this.#current().backend.environments(signal);
  }
  async tools(env: string | null, signal: AbortSignal) {
    return this.#current().backend.tools(env, signal);
  }
  async splits(env: string | null, signal: AbortSignal) {
    return this.#current().backend.splits(env, signal);
  }
  async tasks(env: string | null, split: string, signal: AbortSignal) {
    return this.#current().backend.tasks(env, split, signal);
  }
  async numTasks(env: string | null, split: string, signal: AbortSignal) {
    return this.#current().backend.numTasks(env, split, signal);
  }
  async task(env: string | null, split: string, index: number, signal: AbortSignal) {
    return this.#current().backend.task(env, split, index, signal);
  }
  async taskRange(env: string | null, split: string, start: number | null, stop: number | null, signal: AbortSignal) {
    return this.#current().backend.taskRange(env, split, start, stop, signal);
  }

  async create(request: BackendCreate, signal: AbortSignal): Promise<BackendSessionRef> {
    const { id, backend } = this.#current();
    return { process: id, ref: await backend.create(request, signal) };
  }

  session(ref: BackendSessionRef): BackendSession {
    const inner = ref['ref'] as BackendSessionRef;
    const run = this.#run;
    return run !== null && run.id === ref['process'] ? run.backend.session(inner) : lostSession;
  }

  async close(): Promise<void> {
    this.detach();
  }

  #current(): ProcessRun {
    if (this.#run === null) throw this.#unavailable();
    return this.#run;
  }
}

const lost = () => Promise.reject(new PalestraError('session_lost'));

/** A session whose process has ended. */
const lostSession: BackendSession = {
  prompt: lost,
  messages: lost,
  taskTools: lost,
  call: lost,
  scoreGroup: lost,
  ping: lost,
  delete: () => Promise.resolve(),
};
