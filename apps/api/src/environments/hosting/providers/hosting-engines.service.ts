import { setTimeout as sleep } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import type { Capabilities, ProviderName } from '@palestra/hosting';
import { type HostingOffer, type HostingSettings, PalestraError } from '@palestra/protocol';
import { type Config, CONFIG } from '../../../platform/config.ts';
import { Database } from '../../../platform/database/database.ts';
import { selectEngines, type StoredEngine } from './engine.sql.ts';
import { assertSupported, defaultSettings } from './supported-settings.ts';

/** The reconciler writes that an engine answers far more often. */
const SILENT_S = 60;
/** After a start the reconciler has not seen the engines yet. */
const FIRST_SEEN_MS = 10_000;
const POLL_MS = 250;
/** In the order of preference. */
const ENGINES: ProviderName[] = ['kubernetes', 'docker', 'process'];

export interface Engine {
  name: ProviderName;
  capabilities: Capabilities;
}

/** The engines that run environments here. API processes know them from the process that runs instances, because they never talk to one. */
@Injectable()
export class HostingEngines {
  constructor(
    private readonly database: Database,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /**
   * The engine that the settings name, or else the operator's. Throws `hosting_off` when there is none. `waitMs`: soon after a start of the
   * service, for the first look at the engines.
   */
  async choose(wanted: ProviderName | null, waitMs = FIRST_SEEN_MS): Promise<Engine> {
    const { engine } = this.config.hosting;
    if (engine === 'off') throw new PalestraError('hosting_off');
    const stored = (await this.#seen(waitMs)).filter(({ name }) => name !== 'remote');
    const answering = stored.filter(isAnswering);
    const names = wanted === null ? ENGINES : [wanted];
    for (const name of names) {
      const found = answering.find((one) => one.name === name);
      if (found !== undefined) return { name, capabilities: found.capabilities };
    }
    throw noEngine(wanted, stored, answering);
  }

  /** As `choose`, for these settings. Throws `hosting_unsupported` for settings that the engine cannot enforce. */
  async check(settings: HostingSettings): Promise<Engine> {
    const engine = await this.choose(settings.provider ?? null);
    assertSupported(settings, engine.name, engine.capabilities);
    return engine;
  }

  /** The engines, as soon as one process has looked at them; none if no process looks. */
  async #seen(waitMs: number): Promise<StoredEngine[]> {
    for (const deadline = Date.now() + waitMs; ; await sleep(POLL_MS)) {
      const engines = await selectEngines(this.database.pool);
      const known = engines.some(({ name, detail, silent_s: silent }) => name !== 'remote' && (detail !== null || silent < SILENT_S));
      if (known || Date.now() >= deadline) return engines;
    }
  }

  /** What authors can use now, or why there is nothing. */
  async offer(): Promise<Omit<HostingOffer, 'can_deploy'>> {
    try {
      const { name, capabilities } = await this.choose(null, 0);
      const { isolation, egress, limits, gpus } = capabilities;
      const defaults = defaultSettings(capabilities);
      return { hosts: true, detail: null, provider: name, isolation: [...isolation], egress: [...egress], limits, gpus, defaults };
    } catch (error) {
      if (!(error instanceof PalestraError)) throw error;
      const defaults = defaultSettings(null);
      return { hosts: false, detail: error.message, provider: null, isolation: [], egress: [], limits: false, gpus: false, defaults };
    }
  }

  /** Settings of an environment whose author set none. */
  async defaults(): Promise<HostingSettings> {
    return defaultSettings((await this.choose(null)).capabilities);
  }
}

/** Also one that did not answer just now: a busy engine may be late, and a deploy waits for it. */
function isAnswering(engine: StoredEngine): engine is StoredEngine & { capabilities: Capabilities } {
  return engine.capabilities !== null && engine.silent_s < SILENT_S;
}

function noEngine(wanted: ProviderName | null, stored: StoredEngine[], answering: StoredEngine[]): PalestraError {
  const silent = stored.find(({ name, detail }) => detail !== null && (wanted === null || name === wanted));
  const why = silent === undefined ? '' : ` The engine "${silent.name}" does not answer: ${silent.detail}`;
  if (answering.length === 0)
    return new PalestraError('hosting_off', why === '' ? {} : { detail: `This server runs no environments now.${why}` });
  const has = answering.map(({ name }) => `"${name}"`).join(', ');
  return new PalestraError('hosting_unsupported', { detail: `This server has no engine "${wanted}"; it has ${has}.${why}` });
}
