import { createHash } from 'node:crypto';
import type { V1PodSpec } from '@kubernetes/client-node';
import { ANNOTATION, LABEL, names } from '../cluster/names.ts';
import { type ImageSpec, labelsOf, NOT_MOVED, type Placement, serverPod } from '../instance/instance-pod.ts';

/** The API of agent-sandbox that this service uses: https://github.com/kubernetes-sigs/agent-sandbox, `extensions/api/v1beta1`. */
export const EXTENSIONS = 'extensions.agents.x-k8s.io/v1beta1';

/** Bounds what a process looks at again and again: what others change is seen this much later. */
export const FRESH_MS = 60_000;

export type PoolImageSpec = Omit<ImageSpec, 'id' | 'single'>;

export interface WarmOptions {
  installation: string;
  placement: Placement;
}

interface Metadata {
  name: string;
  uid: string;
  labels?: Record<string, string>;
  deletionTimestamp?: string;
}

export interface Template {
  metadata: Metadata;
}

export interface Pool {
  spec: { replicas?: number };
}

/** What this service reads of a claim. `status.sandbox.name` is also the name of the pod. */
export interface Claim {
  metadata: Metadata;
  status?: {
    conditions?: { type: string; status: string; reason?: string; message?: string }[];
    sandbox?: { name?: string };
  };
}

/** A Secret never changes, so that other secrets make another template, and unused pods with the old ones are replaced. */
export const secretName = ({ versionId, secrets }: PoolImageSpec): string => {
  const sorted = Object.entries(secrets).toSorted(([a], [b]) => (a < b ? -1 : 1));
  const digest = createHash('sha256')
    .update(JSON.stringify([versionId, sorted]))
    .digest('hex');
  return `${names.pool(versionId)}-${digest.slice(0, 10)}`;
};

export const poolLabels = (installation: string, versionId: string): Record<string, string> => ({
  [LABEL.installation]: installation,
  [LABEL.version]: versionId,
});

/** The pod that a bare instance would be, without its id. Our own network policies select it by its labels. */
export function templateOf(spec: PoolImageSpec, options: WarmOptions & { runtimeClass: string | null }): object {
  const { versionId, egress, environment, artifact } = spec;
  const labels = poolLabels(options.installation, versionId);
  const pod = serverPod(spec, { ...options, secret: secretName(spec) });
  return {
    apiVersion: EXTENSIONS,
    kind: 'SandboxTemplate',
    metadata: { name: names.pool(versionId), labels },
    spec: {
      podTemplate: {
        metadata: {
          labels: { ...labelsOf(options.installation, 'warm', egress.kind), ...labels },
          annotations: { [ANNOTATION.environment]: environment },
        },
        spec: ready(pod, artifact.port),
      },
      networkPolicyManagement: 'Unmanaged',
      envVarsInjectionPolicy: 'Disallowed',
      volumeClaimTemplatesPolicy: 'Disallowed',
      service: false,
    },
  };
}

/** Claims get pods that are ready before others, and a pod is ready when its server listens. */
const ready = (pod: V1PodSpec, port: number): V1PodSpec => ({
  ...pod,
  containers: pod.containers.map((container) => ({ ...container, readinessProbe: { tcpSocket: { port }, periodSeconds: 1 } })),
});

/** Belongs to its template, as its Secret does: the cluster deletes both after it. */
export const poolOf = (versionId: string, replicas: number, template: Template, installation: string): object => ({
  apiVersion: EXTENSIONS,
  kind: 'SandboxWarmPool',
  metadata: { name: names.pool(versionId), labels: poolLabels(installation, versionId), ownerReferences: [ownerOf(template)] },
  spec: { replicas, sandboxTemplateRef: { name: template.metadata.name }, updateStrategy: { type: 'Recreate' } },
});

export const ownerOf = ({ metadata: { name, uid } }: Template) => ({ apiVersion: EXTENSIONS, kind: 'SandboxTemplate', name, uid });

/** Variables or volumes in a claim would start a new pod instead of one of the pool. */
export const claimOf = (id: string, versionId: string, installation: string): object => ({
  apiVersion: EXTENSIONS,
  kind: 'SandboxClaim',
  metadata: { name: names.server(id), labels: { ...poolLabels(installation, versionId), [LABEL.instance]: id } },
  spec: {
    warmPoolRef: { name: names.pool(versionId) },
    additionalPodMetadata: { labels: { [LABEL.claimed]: id }, annotations: NOT_MOVED },
  },
});

/** Lets nobody evict a claimed pod. It asks for a number of pods, because nothing tells the cluster how many there should be. */
export const claimsBudget = (installation: string) => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: names.policy(installation, 'claims'), labels: { [LABEL.installation]: installation } },
  spec: {
    selector: {
      matchLabels: { [LABEL.installation]: installation },
      matchExpressions: [{ key: LABEL.claimed, operator: 'Exists' }],
    },
    minAvailable: 2 ** 31 - 1,
    unhealthyPodEvictionPolicy: 'AlwaysAllow',
  },
});
