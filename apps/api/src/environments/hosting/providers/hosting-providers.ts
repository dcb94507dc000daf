import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { Provider, ProviderName } from '@palestra/hosting';
import { type Config, CONFIG } from '../../../platform/config.ts';
import { Database } from '../../../platform/database/database.ts';
import { RemoteProvider } from './remote-provider.ts';

/** The engines of this process, made when they are first needed. Only processes that run jobs need them. */
@Injectable()
export class HostingProviders implements OnApplicationShutdown {
  readonly #made = new Map<ProviderName, Provider>();

  constructor(
    private readonly database: Database,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /** The engines that the configuration allows, whether they answer or not. */
  all(): Provider[] {
    return namesOf(this.config).flatMap((name) => this.get(name) ?? []);
  }

  /** Null for an engine that the configuration does not allow. */
  get(name: string): Provider | null {
    const known = namesOf(this.config).find((one) => one === name);
    if (known === undefined) return null;
    let made = this.#made.get(known) ?? null;
    if (made === null && (made = this.#make(known)) !== null) this.#made.set(known, made);
    return made;
  }

  async onApplicationShutdown(): Promise<void> {
    const all = [...this.#made.values()];
    this.#made.clear();
    await Promise.allSettled(all.map((provider) => provider.close()));
  }

  #make(name: ProviderName): Provider | null {
    return name === 'remote' ? new RemoteProvider(this.database.pool) : null;
  }
}

/** Servers at URLs need no engine. */
function namesOf({ hosting: { engine }, allowCommands }: Config): ProviderName[] {
  if (engine === 'off') return [];
  if (engine !== 'auto') return [engine, 'remote'];
  return allowCommands ? ['docker', 'process', 'remote'] : ['docker', 'remote'];
}
