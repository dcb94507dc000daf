import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import type { SandboxProvider } from '@palestra/hosting';
import type { Logger } from 'pino';
import { type Config, CONFIG } from '../../../platform/config.ts';
import { Database } from '../../../platform/database/database.ts';
import { LOGGER } from '../../../platform/tokens.ts';
import { isEngineAway } from '../providers/engine-away.ts';
import { HostingProviders } from '../providers/hosting-providers.ts';
import { selectLivingSandboxes } from './sandbox.sql.ts';
import { SESSION_SANDBOX } from './sandboxes.service.ts';

const SWEEP_MS = 15_000;
const DEADLINE_MS = 120_000;
/** Of one removal, so that one that hangs does not keep the others. */
const REMOVE_MS = 20_000;
/** Sandboxes that one pass removes. */
const MOST_REMOVED = 50;

/** Removes sandboxes that belong to no session: a process died while it created or removed them. Runs where jobs run; twice does no harm. */
@Injectable()
export class SandboxSweeper implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly #stopping = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();
  /** Where the next pass begins, so that sandboxes that cannot be removed do not keep the others. */
  #first = 0;

  constructor(
    private readonly database: Database,
    private readonly providers: HostingProviders,
    @Inject(CONFIG) private readonly config: Config,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  onApplicationBootstrap(): void {
    if (this.config.jobs === 'here' && this.config.hosting.engine !== 'off') this.#schedule();
  }

  async onApplicationShutdown(): Promise<void> {
    this.#stopping.abort(new Error('the service ends'));
    clearTimeout(this.#timer);
    await this.#running;
  }

  #schedule(): void {
    if (this.#stopping.signal.aborted) return;
    this.#timer = setTimeout(() => {
      this.#running = this.sweep()
        .catch((error: unknown) => {
          if (!isEngineAway(error)) this.logger.warn({ err: error }, 'sandboxes were not swept; this is repeated');
        })
        .finally(() => this.#schedule());
    }, SWEEP_MS);
  }

  /** One pass. Rejects with `engine_unavailable` when an engine does not answer: then nothing is removed and no row is deleted. */
  async sweep(): Promise<void> {
    const signal = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(DEADLINE_MS)]);
    for (const { sandboxes } of await this.providers.all()) {
      if (sandboxes === undefined) continue;
      // The engine first: whatever it has then has had its row before.
      const found = (await sandboxes.list(signal)).filter(({ id }) => id.startsWith(SESSION_SANDBOX));
      const living = await selectLivingSandboxes(this.database.pool);
      const lost = found.filter(({ id }) => !living.has(id));
      const start = this.#first % Math.max(1, lost.length);
      for (const { id } of [...lost.slice(start), ...lost.slice(0, start)].slice(0, MOST_REMOVED)) {
        if (signal.aborted) return;
        this.#first += 1;
        await this.#remove(sandboxes, id, signal);
      }
    }
  }

  /** One that cannot be removed does not keep the others. */
  async #remove(sandboxes: SandboxProvider, id: string, signal: AbortSignal): Promise<void> {
    this.logger.info({ sandbox: id }, 'a sandbox without a session is removed');
    await sandboxes.remove(id, AbortSignal.any([signal, AbortSignal.timeout(REMOVE_MS)])).catch((error: unknown) => {
      this.logger.warn({ err: error, sandbox: id }, 'a sandbox was not removed; this is repeated');
    });
  }
}
