import { abortable, type Clock } from '@palestra/kit';
import { classifyCode, PalestraError, type ToolsAnswer } from '@palestra/protocol';
import type { BackendSession } from '../ports/backend.port.ts';
import { failureError, type LiveSession } from '../registry/live-session.ts';
import type { SessionRegistry } from '../registry/session-registry.ts';
import { isSetUp } from '../state.ts';
import { withDeadline } from './with-deadline.ts';
import type { Restorer } from './restorer.ts';

export interface SetupGateOptions {
  clock: Clock;
  onBackgroundError: (error: unknown, sid: string) => void;
}

/** Holds requests until setup (or a replay) is done, and keeps its failure for later requests. */
export class SetupGate {
  constructor(
    readonly registry: SessionRegistry,
    readonly restorer: Restorer,
    readonly options: SetupGateOptions,
    /** Frees what a lost session holds on its environment's server. */
    readonly releaseUpstream: (live: LiveSession) => void,
  ) {}

  throwIfFailed(live: LiveSession): void {
    if (live.record.failure !== null) throw failureError(live.record.failure);
  }

  isDone(live: LiveSession): boolean {
    return (live.isSetUp && live.restoring === null && live.record.state !== 'restoring') || isSetUp(live.record.state);
  }

  /** Resolves when setup is done. All waiting requests share one request to the backend. */
  async wait(live: LiveSession): Promise<void> {
    if (this.isDone(live)) return;
    this.throwIfFailed(live);
    if (live.record.state === 'restoring') return this.restorer.finish(live);
    live.settingUp ??= this.#waitForBackend(live).finally(() => {
      live.settingUp = null;
    });
    await abortable(live.settingUp, live.signal);
  }

  /** Waits in the background, so that the end and the deadline of setup take effect without a request. Not where this would cost a prompt. */
  watch(live: LiveSession): void {
    if (live.backend?.ready === undefined) return;
    // The failure is stored: later requests get it.
    this.wait(live).catch(() => {});
  }

  async #waitForBackend(live: LiveSession): Promise<void> {
    const backend = await this.registry.backend(live);
    try {
      await this.#withSetupDeadline<unknown>(live, () => (backend.ready ? backend.ready(live.signal) : backend.prompt(live.signal)));
    } catch (error) {
      if (await this.restorer.mayRestore(live, error)) return this.restorer.restore(live);
      await this.recordFailure(live, error);
      // When only the prompt raised, the tools still work.
      if (!(error instanceof PalestraError && error.code === 'environment_failed')) throw error;
    }
    void this.#markDone(live);
  }

  /**
   * Runs a request with the deadline of setup, which starts once for all requests that wait for it; a later request has the same time from its
   * own start. The session counts as busy meanwhile.
   */
  async #withSetupDeadline<T>(live: LiveSession, ask: () => Promise<T>, isSettingUp = !this.isDone(live)): Promise<T> {
    const { clock } = this.options;
    const { setupTimeoutMs } = (await this.registry.hosted(live)).policy;
    const subject = isSettingUp ? 'The setup of the session' : 'The answer of the environment';
    const detail = `${subject} took longer than ${setupTimeoutMs / 1000} s.`;
    const onTimeout = () => new PalestraError(isSettingUp ? 'setup_timeout' : 'backend_timeout', { detail });
    const since = isSettingUp ? (live.setupStartedAt ??= clock.now()) : clock.now();
    live.pendingRequests += 1;
    try {
      return await withDeadline(clock, ask(), Math.max(0, since + setupTimeoutMs - clock.now()), onTimeout);
    } finally {
      live.pendingRequests -= 1;
      // A restored episode has a setup with its own deadline.
      if (live.pendingRequests === 0) live.setupStartedAt = null;
    }
  }

  /** Does not wait for setup, but for a replay, because there is no episode before it. */
  async taskTools(live: LiveSession): Promise<ToolsAnswer> {
    this.throwIfFailed(live);
    const ask = () => {
      const answer = this.#withSetupDeadline(live, async () => (await this.registry.backend(live)).taskTools(live.signal), false);
      return abortable(answer, live.signal);
    };
    if (live.record.state === 'restoring') await this.restorer.finish(live);
    try {
      return await ask();
    } catch (error) {
      if (!(await this.restorer.mayRestore(live, error))) throw error;
      await this.restorer.restore(live);
      return ask();
    }
  }

  /** Runs a request that the backend holds until setup is done. The answer also tells how setup ended. */
  async runOnBackend<T>(live: LiveSession, ask: (backend: BackendSession) => Promise<T>): Promise<T> {
    this.throwIfFailed(live);
    for (let attempt = 1; ; attempt += 1) {
      if (live.record.state === 'restoring') await this.restorer.finish(live);
      const backend = await this.registry.backend(live);
      try {
        const answer = await abortable(
          this.#withSetupDeadline(live, () => ask(backend)),
          live.signal,
        );
        if (!this.isDone(live)) void this.#markDone(live);
        return answer;
      } catch (error) {
        if (attempt === 1 && (await this.restorer.mayRestore(live, error))) {
          await this.restorer.restore(live);
          continue;
        }
        await this.recordFailure(live, error);
        throw error;
      }
    }
  }

  /** No request waits until this is stored: without it, another process would only ask the backend again. */
  async #markDone(live: LiveSession): Promise<void> {
    live.isSetUp = true;
    await this.registry
      .advance(live, 'ready', {}, 'starting')
      .catch((error: unknown) => this.options.onBackgroundError(error, live.record.sid));
  }

  /** Takes the session to `failed` or `lost` if the backend's error means that. */
  async recordFailure(live: LiveSession, error: unknown): Promise<void> {
    if (!(error instanceof PalestraError) || live.signal.aborted) return;
    const failureClass = classifyCode(error.code);
    const failure = { code: error.code, status: error.status, detail: this.registry.mask(live).hide(error.message) };
    if (error.code === 'setup_failed' || error.code === 'setup_timeout') {
      await this.registry.advance(live, 'failed', { failure, failureClass });
    } else if (error.code === 'session_lost' || error.code === 'call_timeout') {
      if (await this.registry.advance(live, 'lost', { failure, failureClass })) this.releaseUpstream(live);
    }
  }
}
