import { type Clock, systemClock } from '@palestra/kit';
import pRetry from 'p-retry';

export interface HealthReport {
  healthy: boolean;
  /** Why not, in words for people; null when healthy. */
  detail: string | null;
  checkedAt: number;
}

/** Asks an environment server at a URL for `/health`; answers are kept for `maxAgeMs`, concurrent questions share one. */
export class HealthCheck {
  readonly #url: URL;
  readonly #maxAgeMs: number;
  readonly #timeoutMs: number;
  readonly #clock: Clock;
  readonly #fetch: typeof fetch;
  #last: HealthReport | null = null;
  #running: Promise<HealthReport> | null = null;

  /** `fetch`: decides where connections may go; the global one unless set. */
  constructor(url: string, options: { maxAgeMs?: number; timeoutMs?: number; clock?: Clock; fetch?: typeof fetch } = {}) {
    this.#url = new URL('health', url.endsWith('/') ? url : `${url}/`);
    this.#maxAgeMs = options.maxAgeMs ?? 10_000;
    this.#timeoutMs = options.timeoutMs ?? 2_000;
    this.#clock = options.clock ?? systemClock;
    this.#fetch = options.fetch ?? fetch;
  }

  async report(): Promise<HealthReport> {
    if (this.#last && this.#clock.now() - this.#last.checkedAt < this.#maxAgeMs) return this.#last;
    this.#running ??= this.#ask().finally(() => (this.#running = null));
    return this.#running;
  }

  async #ask(): Promise<HealthReport> {
    const detail = await this.#failure();
    this.#last = { healthy: detail === null, detail, checkedAt: this.#clock.now() };
    return this.#last;
  }

  async #failure(): Promise<string | null> {
    try {
      // Once more after a failed connection: an idle kept-alive socket may have died since the last question.
      const signal = AbortSignal.timeout(this.#timeoutMs);
      const answer = await pRetry(() => this.#fetch(this.#url, { signal, redirect: 'manual' }), { retries: 1, minTimeout: 50, signal });
      await answer.body?.cancel();
      return answer.ok ? null : `GET /health answered ${answer.status}`;
    } catch (error) {
      // Everybody who sees the environment reads this, so neither its URL nor the address behind it is said.
      const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } };
      const why = [code, cause?.code].find((known) => typeof known === 'string') ?? (error as Error).name;
      return `GET /health failed (${String(why)})`;
    }
  }
}
