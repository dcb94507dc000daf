import { newUuid } from '@palestra/kit';
import type { BuildLimits } from '../../provider/provider.port.ts';
import { type Engine, EngineError } from '../engine/engine.ts';
import { LABEL, names } from '../engine/names.ts';
import { createContainer, inspectContainer, removeContainer, startContainer } from '../instance/containers.ts';
import { gatewayContainer, proxyVariables } from '../instance/gateway.ts';
import { isolation, NOBODY } from '../instance/isolation.ts';
import { ensureFrontNetwork, ensureInstanceNetwork, removeNetwork } from '../instance/networks.ts';
import { settled } from '../instance/settled.ts';

const CLOSE_MS = 60_000;
/** How much longer than its build a sandbox lives. */
const SPARE_MS = 30_000;
const PROXY_HOST = 'palestra-proxy';

export interface SandboxOptions {
  installation: string;
  /** An image with Node.js. */
  image: string;
  limits: BuildLimits;
  reachable: readonly string[];
}

/**
 * Where the steps of a build on Podman run: in the namespaces of a container that only waits. Podman's API would give them the network of the
 * machine, and would let a step go on when its build is cancelled. When the container ends, the kernel ends all processes of its namespace.
 */
export interface BuildSandbox {
  /** Query of `POST /build`. */
  query: Record<string, object | string>;
  buildArguments: Record<string, string>;
  close(): Promise<void>;
}

export async function openBuildSandbox(engine: Engine, options: SandboxOptions, signal: AbortSignal): Promise<BuildSandbox> {
  const id = `build-${newUuid()}`;
  const close = () => closeSandbox(engine, id);
  try {
    return { ...(await open(engine, id, options, signal)), close };
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
  const body = {
    Image: image,
    Entrypoint: ['node', '-e', `setTimeout(() => {}, ${lifetimeMs})`],
    Cmd: [],
    User: NOBODY,
    Labels: labels,
    Healthcheck: { Test: ['NONE'] },
    HostConfig: {
      ...isolation(info, { cpus: 1, memoryMb: 64, pids: 32, diskMb: 1 }),
      AutoRemove: true,
      NetworkMode: subnet ? names.network(id) : 'none',
    },
    ...(subnet && { NetworkingConfig: { EndpointsConfig: { [names.network(id)]: { IPAMConfig: { IPv4Address: subnet.server } } } } }),
  };
  const start = async (name: string, container: object) => {
    await createContainer(engine, name, container, signal);
    await startContainer(engine, name, signal);
  };
  const startGateway = async () => {
    if (subnet === null) return;
    const front = await ensureFrontNetwork(engine, installation, signal);
    const more = { publishAt: null, port: null, egress: { kind: 'open' }, reachable, lifetimeMs } as const;
    await start(names.gateway(id), gatewayContainer(info, { id, image, labels, subnet, front, ...more }));
  };
  await settled([start(keeper, body), startGateway()]);
  const pid = (await inspectContainer(engine, keeper, signal))?.State.Pid;
  const namespaces = ['pid', 'net'].map((kind) => ({
    Name: kind === 'net' ? 'network' : kind,
    Host: false,
    Path: `/proc/${pid}/ns/${kind}`,
  }));
  return {
    query: {
      // A JSON list, which as an array would be repeated parameters.
      nsoptions: JSON.stringify(namespaces),
      dnsservers: JSON.stringify(['127.0.0.1']),
      ...(subnet && { extrahosts: JSON.stringify([`${PROXY_HOST}:${subnet.gateway}`]) }),
    },
    // A name, because an address that changes would be another build for the engine's cache.
    buildArguments: subnet ? proxyVariables(PROXY_HOST) : {},
  };
}

async function closeSandbox(engine: Engine, id: string): Promise<void> {
  const signal = AbortSignal.timeout(CLOSE_MS);
  await settled([names.server(id), names.gateway(id)].map((name) => removeContainer(engine, name, signal)));
  await removeNetwork(engine, names.network(id), signal);
}

/** Networks of builds whose service was killed; their containers have ended by themselves. */
export async function removeOldSandboxes(engine: Engine, installation: string, signal: AbortSignal): Promise<void> {
  const filters = { label: [`${LABEL.installation}=${installation}`, `${LABEL.role}=build`] };
  const networks = await engine.request<{ Name: string }[]>({ method: 'GET', path: '/networks', query: { filters } }, signal);
  for (const { Name } of networks) {
    await removeNetwork(engine, Name, signal).catch((error: unknown) => {
      // A build still runs there.
      if (!(error instanceof EngineError)) throw error;
    });
  }
}
