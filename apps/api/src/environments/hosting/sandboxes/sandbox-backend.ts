import type { SandboxProvider } from '@palestra/hosting';
import { PalestraError } from '@palestra/protocol';
import type { Backend, BackendCreate, BackendSessionRef } from '@palestra/session';
import { withSandboxErrors } from './sandbox-errors.ts';
import { type SandboxRef, SandboxSession } from './sandbox-session.ts';
import type { SandboxRequest } from './sandbox-settings.ts';

export interface SandboxOpening {
  request: SandboxRequest;
  /** Stores what it uses. Throws `limit_reached`. */
  reserve: (sid: string, id: string) => Promise<void>;
  /** Copies the files of its bucket into it. */
  fill: (provider: SandboxProvider, id: string, signal: AbortSignal) => Promise<void>;
}

export interface SandboxBackendOptions {
  provider: () => Promise<SandboxProvider>;
  /** Its id on the engine. */
  idOf: (sid: string) => string;
  forget: (id: string) => Promise<void>;
  environment: string;
  /** Null for a backend that only serves open sandboxes. */
  opening: SandboxOpening | null;
}

/** Sandboxes as sessions, so that they have the ledger, the timeouts and the end of all other sessions (ADR 44). */
export class SandboxBackend implements Backend {
  readonly #options: SandboxBackendOptions;

  constructor(options: SandboxBackendOptions) {
    this.#options = options;
  }

  async create({ sid, again }: BackendCreate, signal: AbortSignal): Promise<BackendSessionRef> {
    const { provider: find, idOf, opening, environment, forget } = this.#options;
    if (opening === null) throw notAnEnvironment();
    const { request, reserve, fill } = opening;
    const id = idOf(sid);
    return withSandboxErrors(async () => {
      const provider = await find();
      await reserve(sid, id);
      try {
        if (again === true) await provider.remove(id, signal);
        await provider.create({ ...request.spec, id, environment }, signal);
        await fill(provider, id, signal);
      } catch (error) {
        await provider.remove(id, AbortSignal.timeout(REMOVE_MS)).catch(() => {});
        await forget(id);
        throw error;
      }
      return { sandbox: id, has_policy: request.hasPolicy } satisfies SandboxRef;
    });
  }

  session(ref: BackendSessionRef): SandboxSession {
    const { sandbox: id, has_policy: hasPolicy } = ref as SandboxRef;
    const { provider, forget } = this.#options;
    return new SandboxSession({ provider, id, hasPolicy, onRemoved: () => forget(id) });
  }

  async close(): Promise<void> {}

  environments = notAnEnvironmentAsync;
  tools = notAnEnvironmentAsync;
  splits = notAnEnvironmentAsync;
  tasks = notAnEnvironmentAsync;
  numTasks = notAnEnvironmentAsync;
  task = notAnEnvironmentAsync;
  taskRange = notAnEnvironmentAsync;
}

const REMOVE_MS = 120_000;

const notAnEnvironment = () => new PalestraError('invalid_request', { detail: 'A sandbox has no tasks.' });
async function notAnEnvironmentAsync(): Promise<never> {
  throw notAnEnvironment();
}
