import type { V1Pod, V1PodSpec } from '@kubernetes/client-node';
import { HostingError } from '../../provider/hosting-error.ts';
import type { InstanceSpec, PoolSpec, Resources } from '../../provider/provider.port.ts';
import { ANNOTATION, type EgressKind, LABEL, names, type PolicyKind, type Role } from '../cluster/names.ts';

export type ImageSpec = InstanceSpec & { artifact: { kind: 'image' }; egress: { kind: EgressKind } };

/** Throws `hosting_unsupported` for what a pod cannot be. */
export function imageSpec<T extends PoolSpec>(spec: T): T & Pick<ImageSpec, 'artifact' | 'egress'> {
  const { artifact, egress } = spec;
  if (artifact.kind !== 'image') {
    throw new HostingError('hosting_unsupported', `A pod runs images, not an artifact of the kind "${artifact.kind}".`);
  }
  if (egress.kind === 'hosts') {
    throw new HostingError('hosting_unsupported', 'Network policies of Kubernetes know no names of hosts. Use egress "none" or "open".');
  }
  return { ...spec, artifact, egress } as T & Pick<ImageSpec, 'artifact' | 'egress'>;
}

/** How all pods of this service are scheduled. */
export interface Placement {
  /** Labels that a node must have. */
  nodeSelector: Readonly<Record<string, string>>;
  /** Names of Secrets with which nodes pull images. */
  pullSecrets: readonly string[];
}

/** Where an instance finds its secrets, also in the variable PALESTRA_SECRETS_DIR. */
const SECRETS_FOLDER = '/run/secrets/palestra';
/** The user that owns nothing. The user of an image is not used: without its registry nobody knows whether it is root. */
const NOBODY = 65_534;
const SMALL_MB = 16;
/** Of the log on the node, and what the node itself counts. */
const LOG_MB = 64;

export const labelsOf = (installation: string, role: Role, egress: PolicyKind): Record<string, string> => ({
  [LABEL.installation]: installation,
  [LABEL.role]: role,
  [LABEL.egress]: egress,
});

/** What every pod with code of others has: no rights, no credentials of the cluster, and nothing of other pods. */
export const isolatedPod = (placement: Placement): Omit<V1PodSpec, 'containers'> => ({
  // Nothing starts again behind the back of the reconciler, which counts ends and knows that sessions are lost.
  restartPolicy: 'Never',
  automountServiceAccountToken: false,
  enableServiceLinks: false,
  hostNetwork: false,
  hostPID: false,
  hostIPC: false,
  securityContext: {
    runAsNonRoot: true,
    runAsUser: NOBODY,
    runAsGroup: NOBODY,
    fsGroup: NOBODY,
    seccompProfile: { type: 'RuntimeDefault' },
  },
  ...(Object.keys(placement.nodeSelector).length > 0 && { nodeSelector: { ...placement.nodeSelector } }),
  ...(placement.pullSecrets.length > 0 && { imagePullSecrets: placement.pullSecrets.map((name) => ({ name })) }),
});

export const isolatedContainer = {
  allowPrivilegeEscalation: false,
  privileged: false,
  readOnlyRootFilesystem: true,
  runAsNonRoot: true,
  capabilities: { drop: ['ALL'] },
};

/** Says that the pod must not be moved: its sessions would be lost. */
export const NOT_MOVED = { 'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false' };

/** The pod of an instance. `runtimeClass`: null for the cluster's default. */
export function instancePod(spec: ImageSpec, options: { installation: string; placement: Placement; runtimeClass: string | null }): V1Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: names.server(spec.id),
      labels: {
        ...labelsOf(options.installation, 'server', spec.egress.kind),
        [LABEL.instance]: spec.id,
        [LABEL.version]: spec.versionId,
      },
      annotations: { [ANNOTATION.environment]: spec.environment, ...NOT_MOVED },
    },
    spec: serverPod(spec, { ...options, secret: names.server(spec.id) }),
  };
}

/** What a pod with the server of a version runs. `secret`: has the secrets of the version, if it has some. */
export function serverPod(
  spec: Omit<ImageSpec, 'id'>,
  options: { placement: Placement; runtimeClass: string | null; secret: string },
): V1PodSpec {
  const { artifact, resources, egress } = spec;
  const hasSecrets = Object.keys(spec.secrets).length > 0;
  const variables = {
    // The home folder of an image cannot be written.
    HOME: '/tmp',
    PORT: String(artifact.port),
    ...spec.variables,
    ...(hasSecrets && { PALESTRA_SECRETS_DIR: SECRETS_FOLDER }),
  };
  return {
    ...isolatedPod(options.placement),
    terminationGracePeriodSeconds: 10,
    ...(options.runtimeClass !== null && { runtimeClassName: options.runtimeClass }),
    // No name server answers there. With that of the cluster, names would be a way out.
    ...(egress.kind === 'none' && { dnsPolicy: 'None', dnsConfig: { nameservers: ['127.0.0.1'] } }),
    containers: [
      {
        name: 'server',
        image: artifact.image,
        imagePullPolicy: 'IfNotPresent',
        ...(artifact.command && { command: artifact.command.map(literal) }),
        env: Object.entries(variables).map(([name, value]) => ({ name, value: literal(value) })),
        ports: [{ containerPort: artifact.port }],
        resources: resourcesOf(resources),
        securityContext: isolatedContainer,
        volumeMounts: [
          { name: 'tmp', mountPath: '/tmp' },
          { name: 'var-tmp', mountPath: '/var/tmp' },
          ...(hasSecrets ? [{ name: 'secrets', mountPath: SECRETS_FOLDER, readOnly: true }] : []),
        ],
      },
    ],
    volumes: [
      { name: 'tmp', emptyDir: { sizeLimit: `${Math.max(1, Math.round(resources.diskMb))}Mi` } },
      { name: 'var-tmp', emptyDir: { sizeLimit: `${SMALL_MB}Mi` } },
      ...(hasSecrets ? [{ name: 'secrets', secret: { secretName: options.secret, defaultMode: 0o444 } }] : []),
    ],
  };
}

/** Requests are the limits, so that an instance always has what its environment asks for. */
function resourcesOf({ cpus, memoryMb, diskMb, gpus }: Resources) {
  const limits: Record<string, string> = {
    cpu: `${Math.max(1, Math.round(cpus * 1_000))}m`,
    memory: `${Math.round(memoryMb)}Mi`,
    'ephemeral-storage': `${Math.round(diskMb) + SMALL_MB + LOG_MB}Mi`,
    ...(gpus > 0 && { 'nvidia.com/gpu': String(gpus) }),
  };
  return { limits, requests: limits };
}

/** Kubernetes would replace `$(NAME)`. */
export const literal = (text: string): string => text.replaceAll('$(', '$$$$(');
