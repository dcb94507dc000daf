import type { V1Pod, V1Secret } from '@kubernetes/client-node';
import { egressRules, gatewayProgram, PROXY_PORT } from '../../docker/instance/gateway.ts';
import type { SandboxNetwork, SandboxSpec } from '../../sandbox/sandbox.port.ts';
import { LABEL, names } from '../cluster/names.ts';
import { isolatedContainer, isolatedPod, type Placement } from '../instance/instance-pod.ts';
import type { Pod } from '../instance/pod.ts';
import { LAST_RESORT_S, sandboxMetadata } from './sandbox-pod.ts';

export interface GatewayPodOptions {
  installation: string;
  placement: Placement;
  /** Has Node.js. */
  image: string;
}

export const GATEWAY_CONTAINER = 'gateway';
const FOLDER = '/opt/palestra-gateway';
const PROGRAM = 'gateway.mjs';
const LIMITS = { cpu: '1', memory: '192Mi', 'ephemeral-storage': '64Mi' };
const REQUESTS = { cpu: '50m', memory: '64Mi', 'ephemeral-storage': '64Mi' };

/** The pod that alone connects a sandbox with others. It waits for its Secret. */
export const gatewayPod = (spec: SandboxSpec, { installation, placement, image }: GatewayPodOptions): V1Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: sandboxMetadata(spec, { installation, name: names.gateway(spec.id), role: 'gateway', policy: 'gateway' }),
  spec: {
    ...isolatedPod(placement),
    activeDeadlineSeconds: LAST_RESORT_S,
    terminationGracePeriodSeconds: 1,
    containers: [
      {
        name: GATEWAY_CONTAINER,
        image,
        imagePullPolicy: 'IfNotPresent',
        command: ['node', '--max-old-space-size=64', `${FOLDER}/${PROGRAM}`],
        args: [],
        ports: [{ containerPort: PROXY_PORT }],
        resources: { limits: LIMITS, requests: REQUESTS },
        securityContext: isolatedContainer,
        volumeMounts: [
          { name: 'program', mountPath: FOLDER, readOnly: true },
          { name: 'tmp', mountPath: '/tmp' },
        ],
      },
    ],
    volumes: [
      { name: 'program', secret: { secretName: names.gateway(spec.id), items: [{ key: PROGRAM, path: PROGRAM }], defaultMode: 0o444 } },
      { name: 'tmp', emptyDir: { sizeLimit: '16Mi' } },
    ],
  },
});

/** Program and rules of a gateway. `plain`: hosts that it reaches at any address, but only by plain HTTP. */
export function gatewaySecret(gateway: Pod, network: SandboxNetwork, plain: readonly string[]): V1Secret {
  const proxy = { host: null, port: PROXY_PORT, ...egressRules(network), refused: [], reachable: [], plain };
  const settings = JSON.stringify({ relay: null, proxy, lifetimeMs: null });
  // In the file and not a variable: a node waits for a missing file, and gives up for a missing variable.
  const program = `process.env.PALESTRA_GATEWAY = ${JSON.stringify(settings)};\n${gatewayProgram()}`;
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: ownedBy(gateway, gateway.metadata.name),
    immutable: true,
    stringData: { [PROGRAM]: program },
  };
}

/**
 * Lets a sandbox out to its gateway, and to nothing else. It belongs to the gateway: without it the policy for pods without a network still holds.
 * JSON, because the client library's class has other names for some fields.
 */
export function gatewayAccess(gateway: Pod, { id }: SandboxSpec, installation: string) {
  const labels = { [LABEL.installation]: installation, [LABEL.sandbox]: id };
  const to = [{ podSelector: { matchLabels: { ...labels, [LABEL.role]: 'gateway' } } }];
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: ownedBy(gateway, names.sandbox(id)),
    spec: {
      podSelector: { matchLabels: { ...labels, [LABEL.role]: 'sandbox' } },
      policyTypes: ['Egress'],
      egress: [{ to, ports: [{ protocol: 'TCP', port: PROXY_PORT }] }],
    },
  };
}

/** The cluster removes it after the pod, whoever removes that. */
const ownedBy = ({ metadata: { labels = {}, name: owner, uid } }: Pod, name: string) => ({
  name,
  labels,
  ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: owner, uid }],
});
