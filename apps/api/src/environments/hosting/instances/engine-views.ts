import { HostingError, type Capabilities, type Provider, type RunningInstance } from '@palestra/hosting';
import { abortable } from '@palestra/kit';
import type { Logger } from 'pino';
import type pg from 'pg';
import { saveEngine } from '../providers/engine.sql.ts';
import type { EngineView } from './snapshot.ts';

const LIST_MS = 5_000;
/** How often an engine without instances is asked for what a crash left. */
const IDLE_EVERY_MS = 30_000;
/** How often the database is told that an engine answers. */
const SAVE_EVERY_MS = 5_000;

interface Known {
  view: EngineView;
  /** When `view` last became known; 0 before. */
  viewSince: number;
  listedAt: number;
  savedAt: number;
  describedAt: number;
  capabilities: Capabilities | null;
  failure: string | null;
}

/** What the engines run, as they last said. */
export class EngineViews {
  readonly #known = new Map<string, Known>();

  constructor(
    private readonly pool: pg.Pool,
    private readonly logger: Logger,
  ) {}

  /** Null while the engine does not answer, and for an engine that this process does not have. */
  view(name: string): EngineView {
    return this.#known.get(name)?.view ?? null;
  }

  /** Since when the engine answers without a break; 0 while it does not. */
  answersSince(name: string): number {
    const known = this.#known.get(name);
    return known === undefined || known.view === null ? 0 : known.viewSince;
  }

  /** Null until it has answered. */
  capabilities(name: string): Capabilities | null {
    return this.#known.get(name)?.capabilities ?? null;
  }

  /** Asks the engines that have instances, and the others now and then. */
  async refresh(providers: readonly Provider[], inUse: ReadonlySet<string>, now: number): Promise<void> {
    await Promise.all(
      providers.map(async (provider) => {
        const known = this.#of(provider.name);
        if (inUse.has(provider.name) || now - known.listedAt >= IDLE_EVERY_MS) await this.#list(provider, known, now);
        if (now - known.savedAt >= SAVE_EVERY_MS) await this.#save(provider.name, known, now);
      }),
    );
  }

  #of(name: string): Known {
    const known = this.#known.get(name) ?? {
      view: null,
      viewSince: 0,
      listedAt: 0,
      savedAt: 0,
      describedAt: 0,
      capabilities: null,
      failure: null,
    };
    this.#known.set(name, known);
    return known;
  }

  async #list(provider: Provider, known: Known, now: number): Promise<void> {
    known.listedAt = now;
    const before = known.failure;
    try {
      const signal = AbortSignal.timeout(LIST_MS);
      if (known.capabilities === null || now - known.describedAt >= IDLE_EVERY_MS) {
        known.capabilities = await abortable(provider.capabilities(signal), signal);
        known.describedAt = now;
      }
      const view = byId(await abortable(provider.list(signal), signal));
      if (known.view === null) known.viewSince = now;
      known.view = view;
      known.failure = null;
    } catch (error) {
      known.view = null;
      known.failure = error instanceof HostingError ? error.message : `It did not answer within ${LIST_MS / 1_000} s.`;
      // An engine that never answered may not be installed.
      if (before === null && known.capabilities !== null)
        this.logger.warn({ err: error, engine: provider.name }, 'an engine does not answer');
    }
    if (before !== known.failure) known.savedAt = 0;
  }

  async #save(name: string, known: Known, now: number): Promise<void> {
    known.savedAt = now;
    await saveEngine(this.pool, name, known.capabilities, known.failure);
  }
}

const byId = (running: readonly RunningInstance[]): EngineView => new Map(running.map((instance) => [instance.id, instance]));
