import type { SandboxSidecar, SandboxSpec } from '../../sandbox/sandbox.port.ts';
import { CAPABILITIES, HOLD } from '../../sandbox/sandbox-program.ts';
import type { EngineInfo } from '../engine/engine.ts';
import { LABEL, names } from '../engine/names.ts';
import { proxyVariables } from '../instance/gateway.ts';
import { isolation } from '../instance/isolation.ts';
import type { Subnet } from '../instance/subnets.ts';

interface ContainerOptions {
  labels: Record<string, string>;
  subnet: Subnet;
  /** Id of the image on the engine. */
  image: string;
}

/** The container in which commands run, as the user of its image. */
export function sandboxContainer(info: EngineInfo, spec: SandboxSpec, { labels, subnet, image }: ContainerOptions): object {
  const network = names.network(spec.id);
  return {
    Image: image,
    Entrypoint: HOLD,
    Cmd: [],
    Env: variablesOf(spec, spec.variables, subnet),
    Labels: { ...labels, [LABEL.role]: 'server' },
    Healthcheck: { Test: ['NONE'] },
    HostConfig: {
      ...settings(info, spec),
      NetworkMode: network,
      // No name server answers there; without this the engine would forward names to those of the host.
      Dns: ['127.0.0.1'],
      ExtraHosts: spec.hostAliases.flatMap(({ ip, hostnames }) => hostnames.map((name) => `${name}:${ip}`)),
    },
    NetworkingConfig: { EndpointsConfig: { [network]: { IPAMConfig: { IPv4Address: subnet.server } } } },
  };
}

export function sidecarContainer(
  info: EngineInfo,
  spec: SandboxSpec,
  sidecar: SandboxSidecar,
  { labels, subnet, image }: ContainerOptions,
): object {
  const { Sysctls: _, ...shared } = settings(info, spec);
  return {
    Image: image,
    ...(sidecar.command !== null && { Entrypoint: sidecar.command, Cmd: [] }),
    ...(sidecar.args !== null && { Cmd: sidecar.args }),
    Env: variablesOf(spec, sidecar.variables, subnet),
    Labels: { ...labels, [LABEL.role]: 'sidecar' },
    Healthcheck: { Test: ['NONE'] },
    HostConfig: { ...shared, NetworkMode: `container:${names.server(spec.id)}` },
  };
}

/** As for instances, but with a root file system that can be written, because images expect it. */
function settings(info: EngineInfo, { resources }: SandboxSpec): Record<string, unknown> {
  const { ReadonlyRootfs: _, Tmpfs: __, ...rest } = isolation(info, { ...resources, diskMb: 1 });
  return { ...rest, CapAdd: CAPABILITIES };
}

const variablesOf = (spec: SandboxSpec, variables: Readonly<Record<string, string>>, subnet: Subnet): string[] =>
  Object.entries({ ...(spec.network.kind !== 'none' && proxyVariables(subnet.gateway, namesOf(spec))), ...variables }).map(
    ([name, value]) => `${name}=${value}`,
  );

const namesOf = ({ hostAliases }: SandboxSpec): string[] => hostAliases.flatMap(({ hostnames }) => hostnames);
