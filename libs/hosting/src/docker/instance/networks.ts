import { HostingError } from '../../provider/hosting-error.ts';
import { type Engine, EngineError, isStatus } from '../engine/engine.ts';
import { LABEL, names } from '../engine/names.ts';
import { parseSubnet, type Subnet, subnetsFor } from './subnets.ts';

interface NetworkInspection {
  Name: string;
  Internal: boolean;
  IPAM?: { Config?: { Subnet?: string }[] | null };
}

/** What Podman's own API calls a network. */
interface PodmanNetwork {
  subnets?: { subnet: string; gateway?: string }[];
}

const TAKEN = /overlap|already (?:being )?used|already in use|in use/i;

/** Creates the instance's own network unless it exists. It has no address of the host and no route out, so that its members reach only each other. */
export async function ensureInstanceNetwork(
  engine: Engine,
  labels: Record<string, string>,
  id: string,
  signal: AbortSignal,
): Promise<Subnet> {
  const name = names.network(id);
  const existing = await inspectNetwork(engine, name, signal);
  if (existing) return existing;
  const { podman } = await engine.info(signal);
  for (const subnet of subnetsFor(id)) {
    try {
      await engine.request(podman ? podmanNetwork(name, subnet, labels) : dockerNetwork(name, subnet, labels), signal);
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      // Another process was faster, or the name is used: then it is found.
      const created = await inspectNetwork(engine, name, signal);
      if (created) return created;
      if (TAKEN.test(error.message)) continue;
      throw error;
    }
    return subnet;
  }
  throw new HostingError('instance_failed', 'The engine has no free network for the instance. Remove networks that are not used.');
}

async function inspectNetwork(engine: Engine, name: string, signal: AbortSignal): Promise<Subnet | null> {
  try {
    const found = await engine.request<NetworkInspection>({ method: 'GET', path: `/networks/${encodeURIComponent(name)}` }, signal);
    const cidr = found.IPAM?.Config?.[0]?.Subnet;
    return cidr ? parseSubnet(cidr) : null;
  } catch (error) {
    if (isStatus(error, 404)) return null;
    throw error;
  }
}

/** `inhibit_ipv4`: the host gets no address on the bridge. Without it an instance would reach what listens on all addresses of the host. */
const dockerNetwork = (Name: string, subnet: Subnet, Labels: Record<string, string>) =>
  ({
    method: 'POST',
    path: '/networks/create',
    body: {
      Name,
      CheckDuplicate: true,
      Driver: 'bridge',
      Internal: true,
      EnableIPv6: false,
      Labels,
      IPAM: { Config: [{ Subnet: subnet.cidr }] },
      Options: { 'com.docker.network.bridge.inhibit_ipv4': 'true' },
    },
  }) as const;

/** By Podman's own API: with DNS, which the Docker API always enables, the host would get an address on the bridge. */
const podmanNetwork = (name: string, subnet: Subnet, labels: Record<string, string>) =>
  ({
    method: 'POST',
    path: '/v4.0.0/libpod/networks/create',
    body: {
      name,
      driver: 'bridge',
      internal: true,
      dns_enabled: false,
      ipv6_enabled: false,
      labels,
      subnets: [{ subnet: subnet.cidr }] satisfies PodmanNetwork['subnets'],
    },
  }) as const;

/** The network of all gateways of the installation, which the host reaches. */
export async function ensureFrontNetwork(engine: Engine, installation: string, signal: AbortSignal): Promise<string> {
  const Name = names.front(installation);
  if (await hasNetwork(engine, Name, signal)) return Name;
  const body = { Name, CheckDuplicate: true, Driver: 'bridge', Labels: { [LABEL.installation]: installation } };
  try {
    await engine.request({ method: 'POST', path: '/networks/create', body }, signal);
  } catch (error) {
    if (!(error instanceof EngineError) || !(await hasNetwork(engine, Name, signal))) throw error;
  }
  return Name;
}

export async function hasNetwork(engine: Engine, name: string, signal: AbortSignal): Promise<boolean> {
  try {
    await engine.request({ method: 'GET', path: `/networks/${encodeURIComponent(name)}` }, signal);
    return true;
  } catch (error) {
    if (isStatus(error, 404)) return false;
    throw error;
  }
}

/** Resolves also if there is none. */
export async function removeNetwork(engine: Engine, name: string, signal: AbortSignal): Promise<void> {
  try {
    await engine.request({ method: 'DELETE', path: `/networks/${name}` }, signal);
  } catch (error) {
    if (!isStatus(error, 404)) throw error;
  }
}
