import { newUuid } from '@palestra/kit';
import { PalestraError } from '@palestra/protocol';
import type { Backend, BackendCreate, BackendSession, BackendSessionRef } from '@palestra/session';

/** The backend of one life of a process. Its id goes into every session reference. */
interface Life {
  id: string;
  backend: Backend;
}

const starting = () => new PalestraError('environment_starting', { retryAfterSeconds: 1, backendStarting: true });

/**
 * The backend of a process that may die and come back: requests go to the one that runs now, sessions belong to the one that
 * they were opened on and are lost with it. While none runs, requests are answered "starting", which means not executed.
 */
export class SwitchedBackend implements Backend {
  #life: Life | null = null;
  readonly #away: () => PalestraError;

  /** `away` is the answer while no process runs. */
  constructor(away: () => PalestraError = starting) {
    this.#away = away;
  }

  /** A new process is ready. */
  attach(backend: Backend): void {
    const before = this.#life;
    this.#life = { id: newUuid(), backend };
    void before?.backend.close();
  }

  /** The process is gone. */
  detach(): void {
    const before = this.#life;
    this.#life = null;
    void before?.backend.close();
  }

  async environments(signal: AbortSignal) {
    return this.#now().backend.environments(signal);
  }
  async tools(env: string | null, signal: AbortSignal) {
    return this.#now().backend.tools(env, signal);
  }
  async splits(env: string | null, signal: AbortSignal) {
    return this.#now().backend.splits(env, signal);
  }
  async tasks(env: string | null, split: string, signal: AbortSignal) {
    return this.#now().backend.tasks(env, split, signal);
  }
  async numTasks(env: string | null, split: string, signal: AbortSignal) {
    return this.#now().backend.numTasks(env, split, signal);
  }
  async task(env: string | null, split: string, index: number, signal: AbortSignal) {
    return this.#now().backend.task(env, split, index, signal);
  }
  async taskRange(env: string | null, split: string, start: number | null, stop: number | null, signal: AbortSignal) {
    return this.#now().backend.taskRange(env, split, start, stop, signal);
  }

  async create(request: BackendCreate, signal: AbortSignal): Promise<BackendSessionRef> {
    const { id, backend } = this.#now();
    return { process: id, ref: await backend.create(request, signal) };
  }

  session(ref: BackendSessionRef): BackendSession {
    const inner = ref['ref'] as BackendSessionRef;
    const life = this.#life;
    return life !== null && life.id === ref['process'] ? life.backend.session(inner) : lostSession;
  }

  async close(): Promise<void> {
    this.detach();
  }

  #now(): Life {
    if (this.#life === null) throw this.#away();
    return this.#life;
  }
}

const lost = () => Promise.reject(new PalestraError('session_lost'));

/** An episode of a process that is gone. */
const lostSession: BackendSession = {
  prompt: lost,
  messages: lost,
  taskTools: lost,
  call: lost,
  scoreGroup: lost,
  ping: lost,
  delete: () => Promise.resolve(),
};
