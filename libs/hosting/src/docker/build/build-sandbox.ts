import { setTimeout as sleep } from 'node:timers/promises';
import { newUuid } from '@palestra/kit';
import type { BuildLimits } from '../../provider/provider.port.ts';
import { type Engine, EngineError } from '../engine/engine.ts';
import { LABEL, names } from '../engine/names.ts';
import { createContainer, inspectContainer, removeContainer, startContainer } from '../instance/containers.ts';
import { createGateway, proxyVariables } from '../instance/gateway.ts';
import { isolation, NOBODY } from '../instance/isolation.ts';
import { ensureFrontNetwork, ensureInstanceNetwork, removeNetwork } from '../instance/networks.ts';
import { settled } from '../instance/settled.ts';

const CLOSE_MS = 60_000;
/** How much longer than its build a sandbox lives. */
const SPARE_MS = 30_000;
const PROXY_HOST = 'palestra-proxy';
/** What must stay free on the engine's disk, and how often it is measured. */
const FREE_BYTES = 2 ** 30;
const DISK_MS = 200;
/** How soon the engine knows that a container has ended, and says so to those that wait for it. */
const STATE_MS = 1_000;
const NEWS_MS = 30_000;
/** Exit status of the container that watches the disk. */
const DISK_FULL = 75;

export interface SandboxOptions {
  installation: string;
  /** An image with Node.js. */
  image: string;
  limits: BuildLimits;
  reachable: readonly string[];
}

/**
 * Where the steps of a build run: in the network of a container that only waits and watches the disk. On Podman also in its process namespace,
 * because Podman's API would let a step go on when its build is cancelled. When the container ends, the kernel ends all processes of the namespace.
 */
export interface BuildSandbox {
  /** Query of `POST /build`. */
  query: Record<string, object | string>;
  buildArguments: Record<string, string>;
  /** Resolves when the disk is full; then the build must end. Never rejects. */
  diskFull: Promise<void>;
  /** Why a step was killed: Podman ends it with the container, before `diskFull` resolves. */
  wasDiskFull(): Promise<boolean>;
  close(): Promise<void>;
}

export async function openBuildSandbox(engine: Engine, options: SandboxOptions, signal: AbortSignal): Promise<BuildSandbox> {
  const id = `build-${newUuid()}`;
  const ended = new AbortController();
  const close = () => {
    ended.abort();
    return closeSandbox(engine, id);
  };
  try {
    const sandbox = await open(engine, id, options, signal);
    const diskFull = watchDisk(engine, names.server(id), options.limits, ended.signal);
    const wasDiskFull = async () => {
      await sleep(STATE_MS);
      const keeper = await inspectContainer(engine, names.server(id), signal);
      if (keeper?.State.Running) return false;
      return Promise.race([diskFull.then(() => true), sleep(NEWS_MS, false)]);
    };
    return { ...sandbox, diskFull, wasDiskFull, close };
  } catch (error) {
    await close().catch(() => {});
    throw error;
  }
}

async function open(engine: Engine, id: string, options: SandboxOptions, signal: AbortSignal) {
  const { installation, image, limits, reachable } = options;
  const info = await engine.info(signal);
  const labels = { [LABEL.installation]: installation, [LABEL.role]: 'build' };
  const lifetimeMs = limits.seconds * 1_000 + SPARE_MS;
  const subnet = limits.network ? await ensureInstanceNetwork(engine, labels, id, signal) : null;
  const keeper = names.server(id);
  const proxyHost = subnet ? [`${PROXY_HOST}:${subnet.gateway}`] : [];
  const body = {
    Image: image,
    Entrypoint: ['node', '-e', keeperProgram(lifetimeMs, limits.maxBytes)],
    Cmd: [],
    User: NOBODY,
    Labels: labels,
    Healthcheck: { Test: ['NONE'] },
    HostConfig: {
      ...isolation(info, { cpus: 1, memoryMb: 64, pids: 32, diskMb: 1 }),
      NetworkMode: subnet ? names.network(id) : 'none',
      // Docker gives the steps the files of the container for names.
      Dns: ['127.0.0.1'],
      ExtraHosts: proxyHost,
    },
    ...(subnet && { NetworkingConfig: { EndpointsConfig: { [names.network(id)]: { IPAMConfig: { IPv4Address: subnet.server } } } } }),
  };
  const startKeeper = async () => {
    await createContainer(engine, keeper, body, signal);
    await startContainer(engine, keeper, signal);
  };
  const startGateway = async () => {
    if (subnet === null) return;
    const front = await ensureFrontNetwork(engine, installation, signal);
    const more = { publishAt: null, port: null, egress: { kind: 'open' }, reachable, lifetimeMs } as const;
    await createGateway(engine, { id, image, labels, subnet, front, ...more }, signal);
    await startContainer(engine, names.gateway(id), signal);
  };
  await settled([startKeeper(), startGateway()]);
  // A name, because an address that changes would be another build for the engine's cache.
  const { NODE_USE_ENV_PROXY: _, ...proxy } = proxyVariables(PROXY_HOST);
  // Other variables reach a step only if the Dockerfile has an ARG for them.
  const buildArguments = subnet ? proxy : {};
  if (!info.podman) return { query: { networkmode: `container:${keeper}` }, buildArguments };
  const pid = (await inspectContainer(engine, keeper, signal))?.State.Pid;
  const namespaces = ['pid', 'net'].map((kind) => ({
    Name: kind === 'net' ? 'network' : kind,
    Host: false,
    Path: `/proc/${pid}/ns/${kind}`,
  }));
  const query = {
    // A JSON list, which as an array would be repeated parameters.
    nsoptions: JSON.stringify(namespaces),
    dnsservers: JSON.stringify(['127.0.0.1']),
    ...(subnet && { extrahosts: JSON.stringify(proxyHost) }),
  };
  return { query, buildArguments };
}

/**
 * Waits, and ends with `DISK_FULL` when the engine's disk has grown by `maxBytes` or is almost full. The engine's API does not say what a build
 * takes; a container sees the disk under its own root.
 */
const keeperProgram = (lifetimeMs: number, maxBytes: number): string => `
const { bfree, bsize } = require('fs').statfsSync('/');
setInterval(() => {
  const now = require('fs').statfsSync('/');
  if ((bfree - now.bfree) * bsize > ${maxBytes} || now.bavail * bsize < ${FREE_BYTES}) process.exit(${DISK_FULL});
}, ${DISK_MS});
setTimeout(() => process.exit(0), ${lifetimeMs});`;

async function watchDisk(engine: Engine, keeper: string, limits: BuildLimits, signal: AbortSignal): Promise<void> {
  const deadlineMs = limits.seconds * 1_000 + 2 * SPARE_MS;
  const path = `/containers/${keeper}/wait`;
  // The container stays until it is closed: of one that is removed, Podman may not know the status.
  const query = { condition: 'not-running' };
  const ended = await engine.request<{ StatusCode: number }>({ method: 'POST', path, query, deadlineMs }, signal).catch(() => null);
  // For another end, and when the build ends first, there is nothing to say.
  if (ended?.StatusCode !== DISK_FULL) await new Promise(() => {});
}

async function closeSandbox(engine: Engine, id: string): Promise<void> {
  const signal = AbortSignal.timeout(CLOSE_MS);
  await settled([names.server(id), names.gateway(id)].map((name) => removeContainer(engine, name, signal)));
  await removeNetwork(engine, names.network(id), signal);
}

/** What builds of a service that was killed left. Their containers have ended by themselves. */
export async function removeOldSandboxes(engine: Engine, installation: string, signal: AbortSignal): Promise<void> {
  const filters = { label: [`${LABEL.installation}=${installation}`, `${LABEL.role}=build`] };
  const query = { all: true, filters: { ...filters, status: ['exited'] } };
  const containers = await engine.request<{ Id: string }[]>({ method: 'GET', path: '/containers/json', query }, signal);
  await settled(containers.map(({ Id }) => removeContainer(engine, Id, signal)));
  const networks = await engine.request<{ Name: string }[]>({ method: 'GET', path: '/networks', query: { filters } }, signal);
  for (const { Name } of networks) {
    await removeNetwork(engine, Name, signal).catch((error: unknown) => {
      // A build still runs there.
      if (!(error instanceof EngineError)) throw error;
    });
  }
}
