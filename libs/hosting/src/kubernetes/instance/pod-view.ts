import type { RunningInstance } from '../../provider/provider.port.ts';
import { LABEL } from '../cluster/names.ts';
import type { ContainerStatus, Pod } from './pod.ts';

/** Reasons for which a kubelet has given up, or tries again in vain. `ErrImagePull` is the first attempt, which may be repeated. */
export const FAILED_STARTS = new Set([
  'ImagePullBackOff',
  'ErrImageNeverPull',
  'InvalidImageName',
  'CreateContainerConfigError',
  'CreateContainerError',
  'RunContainerError',
  'CrashLoopBackOff',
]);

/** The instance that a pod is. */
export function viewOf(pod: Pod): RunningInstance {
  const { metadata, status = {} } = pod;
  const [container] = status.containerStatuses ?? [];
  const { running, terminated } = container?.state ?? {};
  const startedAt = running?.startedAt ?? terminated?.startedAt;
  const view: RunningInstance = {
    id: metadata.labels?.[LABEL.instance] ?? '',
    versionId: metadata.labels?.[LABEL.version] ?? '',
    state: 'starting',
    endpoint: null,
    exit: null,
    startedAt: startedAt ? new Date(startedAt) : null,
    restarts: 0,
  };
  const exit = exitOf(pod, container);
  if (exit !== null) return { ...view, state: 'exited', exit };
  const port = pod.spec.containers[0]?.ports?.[0]?.containerPort;
  if (running && status.podIP && port !== undefined)
    return { ...view, state: 'running', endpoint: `http://${hostOf(status.podIP)}:${port}` };
  const waiting = waitingFor(pod, container);
  return waiting === null ? view : { ...view, waiting };
}

export const hostOf = (address: string): string => (address.includes(':') ? `[${address}]` : address);

/** Null as long as the pod runs or may still run. */
function exitOf(pod: Pod, container: ContainerStatus | undefined): RunningInstance['exit'] {
  const { metadata, status = {} } = pod;
  const { waiting, terminated } = container?.state ?? {};
  // Memory that ran out ends the container, other shortages end the pod.
  if (status.phase === 'Failed' && status.reason)
    return { code: terminated?.exitCode ?? null, reason: podEnd(status.reason, status.message) };
  if (terminated) return { code: terminated.exitCode, reason: containerEnd(terminated, memoryOf(pod)) };
  if (status.phase === 'Failed' || status.phase === 'Succeeded') return { code: null, reason: status.message ?? 'The pod ended.' };
  if (metadata.deletionTimestamp) {
    return { code: null, reason: 'The cluster removes the pod: it was deleted, or its node is being drained.' };
  }
  if (waiting?.reason && FAILED_STARTS.has(waiting.reason)) return { code: null, reason: startFailure(waiting.reason, waiting.message) };
  return null;
}

type Terminated = NonNullable<NonNullable<ContainerStatus['state']>['terminated']>;

function containerEnd({ exitCode: code, reason, message }: Terminated, memory: string): string {
  if (reason === 'OOMKilled') return `The server used more than its ${memory} of memory and was killed (status ${code}).`;
  if (code === 137) return `The server was killed (status 137), probably because it used more than its ${memory} of memory.`;
  const said = message ? ` ${message.trim()}` : '';
  if (code === 126 || code === 127 || code === 128 || reason === 'StartError' || reason === 'ContainerCannotRun') {
    return `The server could not be started (status ${code}).${said} Its program must exist and be executable by a user other than root.`;
  }
  if (code > 128) return `The server was ended by signal ${code - 128} (status ${code}).${said}`;
  return `The server ended with status ${code}.${said}`;
}

function podEnd(reason: string, message = ''): string {
  const said = message === '' ? '' : ` ${message.trim()}`;
  if (reason === 'Evicted') return `The node evicted the pod.${said}`;
  if (reason === 'OutOfcpu' || reason === 'OutOfmemory' || reason === 'OutOfpods')
    return `The node has no room for the pod (${reason}).${said}`;
  return `The pod ended (${reason}).${said}`;
}

function startFailure(reason: string, message = ''): string {
  const said = message === '' ? reason : `${reason}: ${message.trim()}`;
  if (/^(?:ImagePull|ErrImage|InvalidImage)/.test(reason)) {
    return `The node cannot get the image (${said}). Check its name, and that the cluster may pull it (PALESTRA_KUBERNETES_PULL_SECRETS).`;
  }
  return `The node cannot start the server (${said}).`;
}

/** Why a pod does not run yet; null when nothing is unusual. */
export function waitingFor({ status = {} }: Pod, container: ContainerStatus | undefined): string | null {
  const scheduled = status.conditions?.find(({ type }) => type === 'PodScheduled');
  if (scheduled?.status === 'False' && scheduled.reason === 'Unschedulable')
    return `No node has room for it: ${scheduled.message ?? 'unknown'}`;
  const { waiting } = container?.state ?? {};
  if (waiting?.reason === 'ErrImagePull') return `The node cannot get the image: ${waiting.message ?? 'unknown'}`;
  return null;
}

const memoryOf = ({ spec }: Pod): string => spec.containers[0]?.resources?.limits?.['memory']?.replace(/Mi$/, ' MB') ?? 'limit';
