import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import type { SandboxNetwork } from '../../sandbox/sandbox.port.ts';
import type { Engine, EngineInfo } from '../engine/engine.ts';
import { LABEL, names } from '../engine/names.ts';
import { connectContainer, createContainer } from './containers.ts';
import { isolation, NOBODY } from './isolation.ts';
import type { Subnet } from './subnets.ts';

/** Where a gateway listens for this service. */
export const RELAY_PORT = 8_080;
export const PROXY_PORT = 3_128;
const TOKEN_BYTES = 24;
const RESOURCES = { cpus: 1, memoryMb: 192, pids: 64, diskMb: 1 };

let program: string | null = null;
const textOf = (file: string) => readFileSync(new URL(file, import.meta.url), 'utf8');
const libraryOf = (file: string) => textOf(file).replaceAll(/^export /gm, '');
/** The text of the program. */
export const gatewayProgram = (): string =>
  (program ??= [libraryOf('gateway-policy.mjs'), libraryOf('gateway-tls.mjs'), textOf('gateway-program.mjs')].join('\n'));

export interface GatewayOptions {
  id: string;
  /** An image with Node.js. */
  image: string;
  labels: Record<string, string>;
  subnet: Subnet;
  /** The network on which it is reached. */
  front: string;
  /** Address of the engine's machine at which its port is published; null if nobody connects, or from the front network. */
  publishAt: string | null;
  /** Where the instance listens; null for a build, which does not. */
  port: number | null;
  egress: SandboxNetwork;
  /** CIDRs of addresses that are not public and that instances may reach, if their hosts allow it. */
  reachable: readonly string[];
  /** Hosts that are reached at any address, but only by plain HTTP; default: none. */
  plain?: readonly string[];
  /** It ends by itself after this time and is removed, also if this service is killed; null: it stays. */
  lifetimeMs: number | null;
}

/** What a gateway can be told while it runs. */
export const egressRules = (egress: SandboxNetwork) => ({
  hosts: egress.kind === 'hosts' ? egress.hosts : egress.kind === 'none' ? [] : null,
  policy: egress.kind === 'policy' ? { rules: egress.rules, enforce: egress.enforce } : null,
});

/** A program for the container of a gateway that gives it other rules. It ends with 0 when they are in force, also while the gateway starts. */
export const applyRules = (egress: SandboxNetwork): { command: readonly string[]; stdin: Buffer } => ({
  command: ['node', '--max-old-space-size=32', '-e', APPLY],
  // One line, because not every engine can tell a command the end of its input.
  stdin: Buffer.from(`${JSON.stringify(egressRules(egress))}\n`),
});

const APPLY = `
const net = require('node:net');
const until = Date.now() + 15000;
let rules = '';
const apply = () => {
  let answer = '';
  const control = net.connect('/tmp/control.sock', () => control.end(rules));
  control.on('data', (piece) => (answer += piece)).on('error', (error) => {
    if (Date.now() > until) { console.error(error.message); process.exit(1); }
    setTimeout(apply, 20);
  }).on('end', () => process.exit(answer === 'applied' ? 0 : 1));
};
process.stdin.setEncoding('utf8').on('data', (piece) => {
  rules += piece;
  if (piece.endsWith('\\n')) apply();
});`;

/** Creates the container that joins an instance's network with the outside, unless it exists. */
export async function createGateway(engine: Engine, options: GatewayOptions, signal: AbortSignal): Promise<void> {
  const info = await engine.info(signal);
  const name = names.gateway(options.id);
  await createContainer(engine, name, gatewayContainer(info, options), signal);
  if (!info.podman) await connectContainer(engine, name, names.network(options.id), options.subnet.gateway, signal);
}

function gatewayContainer(info: EngineInfo, options: GatewayOptions): object {
  const { subnet, egress, plain = [] } = options;
  const proxy =
    egress.kind === 'none'
      ? null
      : { host: subnet.gateway, port: PROXY_PORT, ...egressRules(egress), refused: ownAddresses(), reachable: options.reachable, plain };
  // Who reaches its port is not known: other users of the machine, and with an engine on another machine its network.
  const token = randomBytes(TOKEN_BYTES).toString('base64url');
  const relay = options.port === null ? null : { listen: RELAY_PORT, target: { host: subnet.server, port: options.port }, token };
  const settings = { relay, proxy, lifetimeMs: options.lifetimeMs };
  const port = `${RELAY_PORT}/tcp`;
  return {
    Image: options.image,
    Entrypoint: ['node', '--max-old-space-size=64', '--input-type=module', '-e', gatewayProgram()],
    Cmd: [],
    User: NOBODY,
    Env: [`PALESTRA_GATEWAY=${JSON.stringify(settings)}`],
    // Only the engine has it, so that every process of the service finds it.
    Labels: { ...options.labels, [LABEL.role]: 'gateway', ...(relay && { [LABEL.token]: token }) },
    Healthcheck: { Test: ['NONE'] },
    ExposedPorts: { [port]: {} },
    HostConfig: {
      ...isolation(info, RESOURCES),
      NetworkMode: options.front,
      AutoRemove: options.lifetimeMs !== null,
      PortBindings: options.publishAt === null ? {} : { [port]: [{ HostIp: options.publishAt, HostPort: '' }] },
    },
    NetworkingConfig: {
      EndpointsConfig: {
        [options.front]: {},
        // Docker before version 25 creates a container in one network only.
        ...(info.podman && { [names.network(options.id)]: { IPAMConfig: { IPv4Address: subnet.gateway } } }),
      },
    },
  };
}

/** Variables by which programs find the proxy at a host. `directNames`: hosts that they reach without it. */
export function proxyVariables(host: string, directNames: readonly string[] = []): Record<string, string> {
  const proxy = `http://${host}:${PROXY_PORT}`;
  const local = ['localhost', '127.0.0.1', '::1', ...directNames].join(',');
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
