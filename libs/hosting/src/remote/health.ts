import { abortable, type Clock, systemClock } from '@palestra/kit';
import pRetry from 'p-retry';

export interface HealthReport {
  healthy: boolean;
  /** The reason for people; null when healthy. */
  detail: string | null;
  checkedAt: number;
}

/** Requests `/health` of an environment server. Caches answers for `maxAgeMs`; concurrent requests share one. */
export class HealthCheck {
  readonly #url: URL;
  readonly #maxAgeMs: number;
  readonly #timeoutMs: number;
  readonly #clock: Clock;
  readonly #fetch: typeof fetch;
  #last: HealthReport | null = null;
  #running: Promise<HealthReport> | null = null;

  /** `fetch`: with an outbound policy; default: the global one. */
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
      // Retries once: an idle connection may have been closed.
      const signal = AbortSignal.timeout(this.#timeoutMs);
      const ask = async () => {
        const answer = await pRetry(() => this.#fetch(this.#url, { signal, redirect: 'manual' }), { retries: 1, minTimeout: 50, signal });
        await answer.body?.cancel();
        return answer;
      };
      // `fetch` of Node.js 20 may ignore its signal when the connection has ended.
      const { ok, status } = await abortable(ask(), signal);
      return ok ? null : `GET /health answered ${status}`;
    } catch (error) {
      // Shown to everyone who sees the environment, so it contains neither the URL nor the address.
      const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } };
      const why = [code, cause?.code].find((known) => typeof known === 'string') ?? (error as Error).name;
      return `GET /health failed (${String(why)})`;
    }
  }
}
