import type { InstanceSpec } from '../../provider/provider.port.ts';
import type { EngineInfo } from '../engine/engine.ts';
import { LABEL, names } from '../engine/names.ts';
import { proxyVariables } from './gateway.ts';
import { isolation } from './isolation.ts';
import { SECRETS_FOLDER } from './secret-files.ts';
import type { Subnet } from './subnets.ts';

export type ImageSpec = InstanceSpec & { artifact: { kind: 'image' } };

export interface ServerOptions {
  labels: Record<string, string>;
  subnet: Subnet;
  /** In numbers. */
  user: string;
  /** An OCI runtime; null: the engine's default. */
  runtime: string | null;
  /** Folders that the image declares by `VOLUME`. */
  volumes: readonly string[];
}

/** The container of an instance. */
export function serverContainer(info: EngineInfo, spec: ImageSpec, options: ServerOptions): object {
  const { artifact } = spec;
  const hasSecrets = Object.keys(spec.secrets).length > 0;
  const folders = options.volumes.filter((folder) => !(hasSecrets && folder === SECRETS_FOLDER));
  const variables = {
    // The home folder of an image cannot be written.
    HOME: '/tmp',
    PORT: String(artifact.port),
    ...(spec.egress.kind !== 'none' && proxyVariables(options.subnet.gateway)),
    ...spec.variables,
    ...(hasSecrets && { PALESTRA_SECRETS_DIR: SECRETS_FOLDER }),
  };
  return {
    Image: artifact.image,
    ...(artifact.command && { Entrypoint: artifact.command.slice(0, 1), Cmd: artifact.command.slice(1) }),
    User: options.user,
    Env: Object.entries(variables).map(([name, value]) => `${name}=${value}`),
    Labels: { ...options.labels, [LABEL.role]: 'server' },
    // The service has its own checks.
    Healthcheck: { Test: ['NONE'] },
    HostConfig: {
      ...isolation(info, spec.resources, { folders, user: options.user }),
      ...(options.runtime !== null && { Runtime: options.runtime }),
      ...(hasSecrets && { Binds: [`${names.secrets(spec.id)}:${SECRETS_FOLDER}:ro`] }),
      NetworkMode: names.network(spec.id),
      // No name server answers there; without this the engine would forward names to those of the host.
      Dns: ['127.0.0.1'],
    },
    NetworkingConfig: { EndpointsConfig: { [names.network(spec.id)]: { IPAMConfig: { IPv4Address: options.subnet.server } } } },
  };
}
