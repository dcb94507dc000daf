import { abortable, type Clock } from '@palestra/kit';
import { PalestraError, type ToolsAnswer } from '@palestra/protocol';
import type { BackendSession } from '../ports/backend.port.ts';
import { classifyCode } from '../registry/failure.ts';
import { failureError, type LiveSession } from '../registry/live-session.ts';
import type { SessionRegistry } from '../registry/session-registry.ts';
import { isSetUp } from '../state.ts';
import { withDeadline } from './deadline.ts';
import type { Restorer } from './restorer.ts';

export interface SetupGateOptions {
  clock: Clock;
  onBackgroundError: (error: unknown, sid: string) => void;
}

/** Holds requests until setup (or a replay) is done, and keeps its failure for all that come later. */
export class SetupGate {
  constructor(
    readonly registry: SessionRegistry,
    readonly restorer: Restorer,
    readonly options: SetupGateOptions,
    /** To give back what a session that is lost holds on its environment's server. */
    readonly forsake: (live: LiveSession) => void,
  ) {}

  throwIfFailed(live: LiveSession): void {
    if (live.record.failure !== null) throw failureError(live.record.failure);
  }

  isOpen(live: LiveSession): boolean {
    return (live.setUp && live.restoring === null && live.record.state !== 'restoring') || isSetUp(live.record.state);
  }

  /** Resolves when setup is done; asks the backend once, whoever waits. */
  async wait(live: LiveSession): Promise<void> {
    if (this.isOpen(live)) return;
    this.throwIfFailed(live);
    if (live.record.state === 'restoring') return this.restorer.finish(live);
    live.settingUp ??= this.#watch(live).finally(() => {
      live.settingUp = null;
    });
    await abortable(live.settingUp, live.signal);
  }

  /** Notices the end of setup, and its deadline, though nobody may ask; not where asking costs the environment a prompt. */
  follow(live: LiveSession): void {
    if (live.backend?.ready === undefined) return;
    // Whoever asks hears the failure; it is kept.
    this.wait(live).catch(() => {});
  }

  async #watch(live: LiveSession): Promise<void> {
    const backend = await this.registry.backend(live);
    try {
      await this.#inTime<unknown>(live, () => (backend.ready ? backend.ready(live.signal) : backend.prompt(live.signal)));
    } catch (error) {
      if (await this.restorer.mayRestore(live, error)) return this.restorer.restore(live);
      await this.note(live, error);
      // A prompt that raises says nothing about the tools.
      if (!(error instanceof PalestraError && error.code === 'environment_failed')) throw error;
    }
    void this.#open(live);
  }

  /** Setup has one deadline for all who wait for it, and whatever is asked later as long; meanwhile their client is not silent. */
  async #inTime<T>(live: LiveSession, ask: () => Promise<T>, isSettingUp = !this.isOpen(live)): Promise<T> {
    const { clock } = this.options;
    const { setupTimeoutMs } = (await this.registry.hosted(live)).policy;
    const what = isSettingUp ? 'The setup of the session' : 'The answer of the environment';
    const detail = `${what} took longer than ${setupTimeoutMs / 1000} s.`;
    const tooLong = () => new PalestraError(isSettingUp ? 'setup_timeout' : 'backend_timeout', { detail });
    const since = isSettingUp ? (live.setupSince ??= clock.now()) : clock.now();
    live.asking += 1;
    try {
      return await withDeadline(clock, ask(), Math.max(0, since + setupTimeoutMs - clock.now()), tooLong);
    } finally {
      live.asking -= 1;
      // An episode that is built anew is set up anew.
      if (live.asking === 0) live.setupSince = null;
    }
  }

  /** Does not wait for setup; for a replay it does, there is nobody else to ask. */
  async taskTools(live: LiveSession): Promise<ToolsAnswer> {
    this.throwIfFailed(live);
    const ask = () => {
      const asked = this.#inTime(live, async () => (await this.registry.backend(live)).taskTools(live.signal), false);
      return abortable(asked, live.signal);
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

  /** Runs a request that the backend itself holds until setup is done, and learns from its answer. */
  async whileWaiting<T>(live: LiveSession, ask: (backend: BackendSession) => Promise<T>): Promise<T> {
    this.throwIfFailed(live);
    for (let attempt = 1; ; attempt += 1) {
      if (live.record.state === 'restoring') await this.restorer.finish(live);
      const backend = await this.registry.backend(live);
      try {
        const answer = await abortable(
          this.#inTime(live, () => ask(backend)),
          live.signal,
        );
        if (!this.isOpen(live)) void this.#open(live);
        return answer;
      } catch (error) {
        if (attempt === 1 && (await this.restorer.mayRestore(live, error))) {
          await this.restorer.restore(live);
          continue;
        }
        await this.note(live, error);
        throw error;
      }
    }
  }

  /** Nobody needs to wait until that is stored: the next process would only ask the backend again. */
  async #open(live: LiveSession): Promise<void> {
    live.setUp = true;
    await this.registry
      .advance(live, 'ready', {}, 'starting')
      .catch((error: unknown) => this.options.onBackgroundError(error, live.record.sid));
  }

  /** Takes the session to `failed` or `lost` when that is what the backend's error means. */
  async note(live: LiveSession, error: unknown): Promise<void> {
    if (!(error instanceof PalestraError) || live.signal.aborted) return;
    const failureClass = classifyCode(error.code);
    const failure = { code: error.code, status: error.status, detail: this.registry.mask(live).hide(error.message) };
    if (error.code === 'setup_failed' || error.code === 'setup_timeout') {
      await this.registry.advance(live, 'failed', { failure, failureClass });
    } else if (error.code === 'session_lost' || error.code === 'call_timeout') {
      if (await this.registry.advance(live, 'lost', { failure, failureClass })) this.forsake(live);
    }
  }
}
