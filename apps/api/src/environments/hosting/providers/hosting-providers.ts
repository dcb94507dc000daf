import path from 'node:path';
import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { DockerProvider, KubernetesProvider, ProcessProvider, type Provider, type ProviderName } from '@palestra/hosting';
import { type Config, CONFIG } from '../../../platform/config.ts';
import { Database } from '../../../platform/database/database.ts';
import { installationId } from './engine.sql.ts';
import { RemoteProvider } from './remote-provider.ts';

/** The engines of this process, made when they are first needed: where jobs run, and for sandboxes. */
@Injectable()
export class HostingProviders implements OnApplicationShutdown {
  readonly #made = new Map<ProviderName, Provider>();
  #installation: string | null = null;

  constructor(
    @Inject(Database) private readonly database: Database,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /** The engines that the configuration allows, whether they answer or not. */
  async all(): Promise<Provider[]> {
    const all = await Promise.all(namesOf(this.config).map((name) => this.get(name)));
    return all.filter((provider) => provider !== null);
  }

  /** Null for an engine that the configuration does not allow. */
  async get(name: string): Promise<Provider | null> {
    const known = namesOf(this.config).find((one) => one === name);
    if (known === undefined) return null;
    const installation = (this.#installation ??= await installationId(this.database.pool));
    const made = this.#made.get(known) ?? this.#make(known, installation);
    if (made !== null) this.#made.set(known, made);
    return made;
  }

  async onApplicationShutdown(): Promise<void> {
    const all = [...this.#made.values()];
    this.#made.clear();
    await Promise.allSettled(all.map((provider) => provider.close()));
  }

  #make(name: ProviderName, installation: string): Provider | null {
    const { dockerHost, baseImages, dockerNetwork, reachable, pythonPackage, sandboxHttpHosts } = this.config.hosting;
    const python = pythonPackage === null ? {} : { pythonPackage };
    switch (name) {
      case 'process':
        return new ProcessProvider({ folder: path.join(this.config.dataDir, 'hosting'), ...python });
      case 'remote':
        return new RemoteProvider(this.database.pool);
      case 'docker':
        return new DockerProvider({
          installation,
          reachable,
          ...python,
          ...(dockerNetwork !== null && { network: dockerNetwork }),
          harborFolder: path.join(this.config.dataDir, 'hosting', 'harbor'),
          ...(dockerHost !== null && { host: dockerHost }),
          plainHosts: sandboxHttpHosts,
          baseImages: baseImagesOf(baseImages),
        });
      case 'kubernetes':
        return kubernetes(this.config, installation);
      default:
        return null;
    }
  }
}

function kubernetes({ hosting }: Config, installation: string): Provider {
  const { kubeconfig, namespace, callers, enforcesNetworkPolicy, runtimeClasses, nodeSelector, pullSecrets, agentSandbox, builds } =
    hosting.kubernetes;
  const { baseImages, pythonPackage, sandboxHttpHosts } = hosting;
  const { node: gatewayImage } = baseImagesOf(baseImages);
  return new KubernetesProvider({
    installation,
    callers,
    enforcesNetworkPolicy,
    runtimeClasses,
    agentSandbox,
    placement: { nodeSelector, pullSecrets },
    ...(kubeconfig !== null && { kubeconfig }),
    ...(namespace !== null && { namespace }),
    sandboxes: { plainHosts: sandboxHttpHosts, ...(gatewayImage !== undefined && { gatewayImage }) },
    ...(builds !== null && { builds: { ...builds, images: baseImagesOf(baseImages), pythonPackage } }),
  });
}

/** Those that the operator names. */
const baseImagesOf = ({ python, node }: Config['hosting']['baseImages']) => ({
  ...(python !== null && { python }),
  ...(node !== null && { node }),
});

/** Servers at URLs need no engine. */
function namesOf({ hosting: { engine }, allowCommands }: Config): ProviderName[] {
  if (engine === 'off') return [];
  if (engine !== 'auto') return [engine, 'remote'];
  return allowCommands ? ['docker', 'process', 'remote'] : ['docker', 'remote'];
}
