/** What the test kubelet reads of a pod, and writes into its status. */
export interface Pod {
  metadata: {
    name: string;
    namespace: string;
    uid: string;
    labels?: Record<string, string>;
    deletionTimestamp?: string;
    deletionGracePeriodSeconds?: number;
  };
  spec: {
    containers: PodContainer[];
    initContainers?: PodContainer[];
    volumes?: Volume[];
    restartPolicy?: 'Always' | 'OnFailure' | 'Never';
    serviceAccountName?: string;
    imagePullSecrets?: { name: string }[];
    hostAliases?: { ip: string; hostnames: string[] }[];
    securityContext?: { runAsUser?: number; runAsGroup?: number; runAsNonRoot?: boolean; seccompProfile?: { type: string } };
  };
  status?: { phase?: string; startTime?: string };
}

interface Source {
  name?: string;
  key?: string;
  optional?: boolean;
}

export interface PodContainer {
  name: string;
  image: string;
  imagePullPolicy?: string;
  command?: string[];
  args?: string[];
  workingDir?: string;
  stdin?: boolean;
  stdinOnce?: boolean;
  env?: {
    name: string;
    value?: string;
    valueFrom?: { fieldRef?: { fieldPath: string }; secretKeyRef?: Source; configMapKeyRef?: Source };
  }[];
  envFrom?: { prefix?: string; configMapRef?: Source; secretRef?: Source }[];
  ports?: { name?: string; containerPort: number }[];
  resources?: { limits?: Record<string, string> };
  volumeMounts?: { name: string; mountPath: string; readOnly?: boolean; subPath?: string }[];
  readinessProbe?: Probe;
  livenessProbe?: Probe;
  startupProbe?: Probe;
  lifecycle?: { preStop?: { exec?: { command: string[] }; sleep?: { seconds: number } } };
  securityContext?: {
    runAsUser?: number;
    runAsGroup?: number;
    runAsNonRoot?: boolean;
    readOnlyRootFilesystem?: boolean;
    allowPrivilegeEscalation?: boolean;
    capabilities?: { drop?: string[]; add?: string[] };
    seccompProfile?: { type: string };
  };
}

export interface Probe {
  httpGet?: { path?: string; port: number | string; scheme?: string };
  tcpSocket?: { port: number | string };
  exec?: { command: string[] };
  periodSeconds?: number;
  timeoutSeconds?: number;
  failureThreshold?: number;
  initialDelaySeconds?: number;
}

export interface FileItem {
  key: string;
  path: string;
  mode?: number;
}

export interface FileSource {
  secret?: { secretName?: string; name?: string; items?: FileItem[]; optional?: boolean; defaultMode?: number };
  configMap?: { name: string; items?: FileItem[]; optional?: boolean; defaultMode?: number };
  serviceAccountToken?: { path: string; audience?: string; expirationSeconds?: number };
  downwardAPI?: { items: { path: string; fieldRef?: { fieldPath: string } }[] };
}

export interface Volume extends FileSource {
  name: string;
  emptyDir?: { medium?: string; sizeLimit?: string };
  projected?: { sources: FileSource[]; defaultMode?: number };
}

/** Why a container does not run. */
export class NotStarted extends Error {
  constructor(
    readonly reason: string,
    message: string,
  ) {
    super(message);
  }
}

/** Bytes or cores of a quantity such as `512Mi` or `250m`. */
export function quantity(text: string): number {
  const [, number, unit] = /^([\d.]+)(m|k|M|G|Ki|Mi|Gi)?$/.exec(text) ?? [];
  const units: Record<string, number> = { m: 1e-3, k: 1e3, M: 1e6, G: 1e9, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30 };
  if (number === undefined) throw new Error(`"${text}" is not a quantity that the test kubelet knows`);
  return Number(number) * (unit === undefined ? 1 : units[unit]!);
}

/** A field of a pod, as the downward API gives it. */
export function fieldOf(pod: Pod, fieldPath: string, podIP: string, node: string): string {
  const label = /^metadata\.labels\['(.+)'\]$/.exec(fieldPath)?.[1];
  if (label !== undefined) return pod.metadata.labels?.[label] ?? '';
  const fields: Record<string, string> = {
    'metadata.name': pod.metadata.name,
    'metadata.namespace': pod.metadata.namespace,
    'metadata.uid': pod.metadata.uid,
    'spec.nodeName': node,
    'spec.serviceAccountName': pod.spec.serviceAccountName ?? 'default',
    'status.podIP': podIP,
    'status.hostIP': '127.0.0.1',
  };
  if (fields[fieldPath] === undefined) throw new NotStarted('CreateContainerConfigError', `the test kubelet has no field ${fieldPath}`);
  return fields[fieldPath];
}
