import type { V1Container, V1Pod } from '@kubernetes/client-node';
import { proxyVariables } from '../../docker/instance/gateway.ts';
import type { SandboxSpec } from '../../sandbox/sandbox.port.ts';
import { CAPABILITIES, HOLD } from '../../sandbox/sandbox-program.ts';
import { ANNOTATION, LABEL, names, type PolicyKind, type Role } from '../cluster/names.ts';
import { isolatedPod, labelsOf, literal, type Placement } from '../instance/instance-pod.ts';

export interface SandboxPodOptions {
  installation: string;
  placement: Placement;
  /** Null for the cluster's default. */
  runtimeClass: string | null;
  /** Full names of the images of the sandbox and of its sidecars. */
  images: readonly string[];
  /** Host of its gateway in URLs; null: it has none. */
  gateway: string | null;
}

/** The container in which commands run. */
export const SANDBOX_CONTAINER = 'sandbox';
export const sidecarContainer = (index: number): string => `sidecar-${index}`;

/** Longer than any session lasts: for pods of a service that is gone. */
export const LAST_RESORT_S = 7 * 86_400;
const DISK_LIMIT = '16Gi';
const DISK_REQUEST = '1Gi';

/** Labels and annotations of a pod that belongs to a sandbox. */
export const sandboxMetadata = (
  { id, environment }: Pick<SandboxSpec, 'id' | 'environment'>,
  { installation, name, role, policy }: { installation: string; name: string; role: Role; policy: PolicyKind },
) => ({
  name,
  labels: { ...labelsOf(installation, role, policy), [LABEL.sandbox]: id },
  annotations: { [ANNOTATION.environment]: environment, 'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false' },
});

/** The pod of a sandbox. Its containers run as the users of their images, perhaps root, and can write their root file systems. */
export function sandboxPod(spec: SandboxSpec, options: SandboxPodOptions): V1Pod {
  const { installation, placement, runtimeClass, images, gateway } = options;
  const isOpen = spec.network.kind === 'open';
  const aliases = spec.hostAliases.map(({ ip, hostnames }) => ({ ip, hostnames: hostnames.map((name) => name.toLowerCase()) }));
  const proxy =
    gateway === null
      ? {}
      : proxyVariables(
          gateway,
          spec.hostAliases.flatMap(({ hostnames }) => hostnames),
        );
  const container = (name: string, index: number, variables: Readonly<Record<string, string>>): V1Container => ({
    name,
    image: images[index]!,
    imagePullPolicy: 'IfNotPresent',
    env: Object.entries({ ...proxy, ...variables }).map(([key, value]) => ({ name: key, value: literal(value) })),
    resources: resourcesOf(spec),
    securityContext: { allowPrivilegeEscalation: false, privileged: false, capabilities: { drop: ['ALL'], add: CAPABILITIES } },
  });
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    // A sandbox with a gateway is let out to that alone, by a policy of its own.
    metadata: sandboxMetadata(spec, { installation, name: names.sandbox(spec.id), role: 'sandbox', policy: isOpen ? 'open' : 'none' }),
    spec: {
      ...isolatedPod(placement),
      securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
      activeDeadlineSeconds: LAST_RESORT_S,
      terminationGracePeriodSeconds: 1,
      ...(runtimeClass !== null && { runtimeClassName: runtimeClass }),
      // No name server answers there. With that of the cluster, names would be a way out.
      ...(!isOpen && { dnsPolicy: 'None', dnsConfig: { nameservers: ['127.0.0.1'] } }),
      ...(aliases.length > 0 && { hostAliases: aliases }),
      containers: [
        { ...container(SANDBOX_CONTAINER, 0, spec.variables), command: HOLD.map(literal), args: [] },
        ...spec.sidecars.map(({ command, args, variables }, index) => ({
          ...container(sidecarContainer(index), index + 1, variables),
          ...(command !== null && { command: command.map(literal) }),
          ...(args !== null && { args: args.map(literal) }),
        })),
      ],
    },
  };
}

function resourcesOf({ resources: { cpus, memoryMb } }: SandboxSpec) {
  const limits = { cpu: `${Math.max(1, Math.round(cpus * 1_000))}m`, memory: `${Math.round(memoryMb)}Mi` };
  return { limits: { ...limits, 'ephemeral-storage': DISK_LIMIT }, requests: { ...limits, 'ephemeral-storage': DISK_REQUEST } };
}
