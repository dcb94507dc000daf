import { PalestraError } from '@palestra/protocol';
import { abortable } from './abortable.ts';
import type { BackendSession } from './backend.port.ts';
import { classifyCode } from './failure.ts';
import type { LiveSession } from './live-session.ts';
import type { SessionRegistry } from './session-registry.ts';
import { isSetUp } from './state.ts';

/** Holds requests until setup is done, and keeps its failure for all that come later. */
export class SetupGate {
  constructor(
    readonly registry: SessionRegistry,
    readonly onBackgroundError: (error: unknown, sid: string) => void,
  ) {}

  throwIfFailed(live: LiveSession): void {
    const { failure } = live.record;
    if (failure !== null) throw new PalestraError(failure.code, { status: failure.status, detail: failure.detail });
  }

  isOpen(live: LiveSession): boolean {
    return live.setUp || isSetUp(live.record.state);
  }

  /** Resolves when setup is done; asks the backend once, whoever waits. */
  async wait(live: LiveSession): Promise<void> {
    if (this.isOpen(live)) return;
    this.throwIfFailed(live);
    live.settingUp ??= this.#watch(live).finally(() => {
      live.settingUp = null;
    });
    await abortable(live.settingUp, live.signal);
  }

  async #watch(live: LiveSession): Promise<void> {
    const backend = await this.registry.backend(live);
    try {
      if (backend.ready) await backend.ready(live.signal);
      else await backend.prompt(live.signal);
    } catch (error) {
      await this.note(live, error);
      // A prompt that raises says nothing about the tools.
      if (!(error instanceof PalestraError && error.code === 'environment_failed')) throw error;
    }
    void this.#open(live);
  }

  /** Runs a request that the backend itself holds until setup is done, and learns from its answer. */
  async whileWaiting<T>(live: LiveSession, ask: (backend: BackendSession) => Promise<T>): Promise<T> {
    this.throwIfFailed(live);
    const backend = await this.registry.backend(live);
    try {
      const answer = await abortable(ask(backend), live.signal);
      if (!this.isOpen(live)) void this.#open(live);
      return answer;
    } catch (error) {
      await this.note(live, error);
      throw error;
    }
  }

  /** Nobody needs to wait until that is stored: the next process would only ask the backend again. */
  async #open(live: LiveSession): Promise<void> {
    live.setUp = true;
    await this.registry.advance(live, 'ready', {}, 'starting').catch((error: unknown) => this.onBackgroundError(error, live.record.sid));
  }

  /** Takes the session to `failed` or `lost` when that is what the backend's error means. */
  async note(live: LiveSession, error: unknown): Promise<void> {
    if (!(error instanceof PalestraError) || live.signal.aborted) return;
    const failureClass = classifyCode(error.code);
    if (error.code === 'setup_failed') {
      const failure = { code: error.code, status: error.status, detail: error.message };
      await this.registry.advance(live, 'failed', { failure, failureClass });
    } else if (error.code === 'session_lost') {
      await this.registry.advance(live, 'lost', { failureClass });
    }
  }
}
