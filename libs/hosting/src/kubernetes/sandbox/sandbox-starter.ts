import { applyRules } from '../../docker/instance/gateway.ts';
import { settled } from '../../docker/instance/settled.ts';
import { HostingError } from '../../provider/hosting-error.ts';
import type { SandboxNetwork, SandboxSpec } from '../../sandbox/sandbox.port.ts';
import { type Cluster, ClusterRefusal } from '../cluster/cluster.ts';
import { names } from '../cluster/names.ts';
import type { Guards } from '../instance/guards.ts';
import type { Placement } from '../instance/instance-pod.ts';
import type { Pod } from '../instance/pod.ts';
import { hostOf } from '../instance/pod-view.ts';
import { exec } from './exec.ts';
import { GATEWAY_CONTAINER, gatewayAccess, gatewayPod, gatewaySecret } from './gateway-pod.ts';
import { SANDBOX_CONTAINER, sandboxPod, sidecarContainer } from './sandbox-pod.ts';
import { type Part, waitForStart } from './sandbox-state.ts';

export interface StarterOptions {
  cluster: Cluster;
  guards: Guards;
  installation: string;
  placement: Placement;
  /** Null for the cluster's default. */
  runtimeClass: string | null;
  /** Has Node.js. */
  gatewayImage: string;
  /** Hosts that sandboxes reach at any address, but only by plain HTTP. */
  plain: readonly string[];
}

const RULES_MS = 20_000;
const SMALL_BYTES = 1_024;

/** Resolves when commands can run. What it created is left if it fails. `images`: full names, of the sandbox and of its sidecars. */
export async function startSandbox(
  spec: SandboxSpec,
  images: readonly string[],
  options: StarterOptions,
  signal: AbortSignal,
): Promise<void> {
  const { cluster, guards } = options;
  const { id, network } = spec;
  // Before the first pod, which would otherwise have the network of the cluster.
  await guards.apply(signal);
  const hasGateway = network.kind === 'hosts' || network.kind === 'policy';
  const gateway = hasGateway ? await startGateway(spec, options, signal) : null;
  const start = async () => {
    await post<Pod>(cluster, '/api/v1', 'pods', sandboxPod(spec, { ...options, images, gateway }), signal);
    await waitForStart(cluster, names.sandbox(id), partsOf(spec), signal);
  };
  // Applying the rules also waits until the gateway listens.
  await settled([start(), ...(hasGateway ? [applyGatewayRules(cluster, id, network, signal)] : [])]);
}

/** When it resolves, the rules are in force, and all connections of the old ones are closed. */
export async function applyGatewayRules(cluster: Cluster, id: string, network: SandboxNetwork, signal: AbortSignal): Promise<void> {
  const target = { cluster, pod: names.gateway(id), container: GATEWAY_CONTAINER };
  const request = { ...applyRules(network), bare: true, timeoutMs: RULES_MS, maxBytes: SMALL_BYTES };
  const { exitCode, output } = await exec(target, request, signal);
  if (exitCode === 0) return;
  const why = output.toString().trim() || `status ${exitCode}`;
  throw new HostingError('instance_failed', `The network rules could not be applied: ${why}`);
}

const partsOf = (spec: SandboxSpec): Part[] => [
  {
    container: SANDBOX_CONTAINER,
    subject: `The sandbox of ${spec.image}`,
    advice: 'Its image must have /bin/sh.',
    image: spec.image,
  },
  ...spec.sidecars.map(({ name, image }, index) => ({
    container: sidecarContainer(index),
    subject: `The sidecar "${name}"`,
    advice: 'Check its command.',
    image,
    mayEnd: true,
  })),
];

/** The gateway's host in URLs. */
async function startGateway(spec: SandboxSpec, options: StarterOptions, signal: AbortSignal): Promise<string> {
  const { cluster, installation, placement, gatewayImage, plain } = options;
  const pod = await post<Pod>(cluster, '/api/v1', 'pods', gatewayPod(spec, { installation, placement, image: gatewayImage }), signal);
  await settled([
    post(cluster, '/api/v1', 'secrets', gatewaySecret(pod, spec.network, plain), signal),
    post(cluster, '/apis/networking.k8s.io/v1', 'networkpolicies', gatewayAccess(pod, spec, installation), signal),
  ]);
  const advice = 'The operator names an image with Node.js in PALESTRA_BASE_IMAGE_NODE.';
  const part = { container: GATEWAY_CONTAINER, subject: 'The gateway of the sandbox', advice, image: gatewayImage };
  const { podIP } = (await waitForStart(cluster, names.gateway(spec.id), [part], signal)).status ?? {};
  if (!podIP) throw new HostingError('instance_failed', 'The gateway of the sandbox has no address.');
  return hostOf(podIP);
}

async function post<T>(cluster: Cluster, api: string, kind: string, body: object, signal: AbortSignal): Promise<T> {
  try {
    return await cluster.request<T>({ method: 'POST', path: `${api}/namespaces/${cluster.namespace}/${kind}`, body }, signal);
  } catch (error) {
    if (!(error instanceof ClusterRefusal) || !/exceeded quota/.test(error.message)) throw error;
    const advice = 'Choose a smaller machine_size, or ask the operator for a larger ResourceQuota.';
    throw new HostingError('instance_failed', `The cluster has no room for the sandbox: ${error.message}. ${advice}`, { cause: error });
  }
}
