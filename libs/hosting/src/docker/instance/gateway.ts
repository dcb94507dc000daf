import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import type { Egress } from '../../provider/provider.port.ts';
import type { EngineInfo } from '../engine/engine.ts';
import { LABEL, names } from '../engine/names.ts';
import { isolation, NOBODY } from './isolation.ts';
import type { Subnet } from './subnets.ts';

/** Where a gateway listens for this service. */
export const RELAY_PORT = 8_080;
const PROXY_PORT = 3_128;
const RESOURCES = { cpus: 1, memoryMb: 192, pids: 64, diskMb: 1 };

let program: string | null = null;
const programText = () => (program ??= readFileSync(new URL('gateway-program.mjs', import.meta.url), 'utf8'));

export interface GatewayOptions {
  id: string;
  /** An image with Node.js. */
  image: string;
  labels: Record<string, string>;
  subnet: Subnet;
  /** The network on which it is reached. */
  front: string;
  /** Address of the engine's machine at which its port is published; null if this service is a member of the front network. */
  publishAt: string | null;
  /** Where the instance listens. */
  port: number;
  egress: Egress;
}

/** The container that joins an instance's network with the outside. */
export function gatewayContainer(info: EngineInfo, options: GatewayOptions): object {
  const { subnet, egress } = options;
  const hosts = egress.kind === 'hosts' ? egress.hosts.map((host) => host.toLowerCase()) : null;
  const proxy = egress.kind === 'none' ? null : { host: subnet.gateway, port: PROXY_PORT, hosts, refused: ownAddresses() };
  const settings = { relay: RELAY_PORT, target: { host: subnet.server, port: options.port }, proxy };
  const port = `${RELAY_PORT}/tcp`;
  return {
    Image: options.image,
    Entrypoint: ['node', '--max-old-space-size=64', '--input-type=module', '-e', programText()],
    Cmd: [],
    User: NOBODY,
    Env: [`PALESTRA_GATEWAY=${JSON.stringify(settings)}`],
    Labels: { ...options.labels, [LABEL.role]: 'gateway' },
    Healthcheck: { Test: ['NONE'] },
    ExposedPorts: { [port]: {} },
    HostConfig: {
      ...isolation(info, RESOURCES),
      NetworkMode: options.front,
      PortBindings: options.publishAt === null ? {} : { [port]: [{ HostIp: options.publishAt, HostPort: '' }] },
    },
    NetworkingConfig: {
      EndpointsConfig: {
        [options.front]: {},
        [names.network(options.id)]: { IPAMConfig: { IPv4Address: subnet.gateway } },
      },
    },
  };
}

/** Variables by which programs find the proxy. */
export function proxyVariables(egress: Egress, subnet: Subnet): Record<string, string> {
  if (egress.kind === 'none') return {};
  const proxy = `http://${subnet.gateway}:${PROXY_PORT}`;
  const local = 'localhost,127.0.0.1,::1';
  return {
    HTTP_PROXY: proxy,
    HTTPS_PROXY: proxy,
    NO_PROXY: local,
    http_proxy: proxy,
    https_proxy: proxy,
    no_proxy: local,
    // Node.js ignores the others without it.
    NODE_USE_ENV_PROXY: '1',
  };
}

/** A public address of this machine is no way to its services either. */
const ownAddresses = (): string[] =>
  Object.values(networkInterfaces()).flatMap((addresses) => (addresses ?? []).map(({ address }) => address));
