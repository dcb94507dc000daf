import { setTimeout as sleep } from 'node:timers/promises';
import { HostingError } from '../../provider/hosting-error.ts';
import type { Cluster } from '../cluster/cluster.ts';
import type { ContainerStatus, Pod } from '../instance/pod.ts';
import { FAILED_STARTS, waitingFor } from '../instance/pod-view.ts';
import type { ContainerTarget } from './container-run.ts';

const POLL_MS = 200;
/** For images that a node does not have, and for nodes that are added. */
const START_MS = 600_000;
const LOOK_MS = 10_000;
/** Exit status that nodes give a container that could not be started. */
const START_ERROR = 128;

export const podPath = (cluster: Cluster, pod: string): string => `/api/v1/namespaces/${cluster.namespace}/pods/${pod}`;

/** `sandbox_lost` if the container does not run, else null. */
export async function lostSandbox(
  { cluster, pod, container }: ContainerTarget,
  cause: unknown,
  signal: AbortSignal,
): Promise<Error | null> {
  if (signal.aborted || (cause instanceof HostingError && cause.code === 'hosting_unsupported')) return null;
  const soon = AbortSignal.any([signal, AbortSignal.timeout(LOOK_MS)]);
  // A cluster that does not answer tells nothing about the sandbox.
  const found = await cluster.find<Pod>(podPath(cluster, pod), soon).catch(() => undefined);
  if (found === undefined) return null;
  const why = found === null ? 'its pod was removed' : endOf(found, container);
  return why === null ? null : new HostingError('sandbox_lost', `The sandbox has ended: ${why}.`, { cause });
}

export const isRunning = (pod: Pod, container: string): boolean =>
  endOf(pod, container) === null && statusOf(pod, container)?.state?.running !== undefined;

/** Why a container does not run any more; null if it does, or has not started. */
function endOf(pod: Pod, container: string): string | null {
  const { metadata, status = {} } = pod;
  const ended = statusOf(pod, container)?.state?.terminated;
  if (ended) return `${ended.reason ?? 'its container ended'} (status ${ended.exitCode})`;
  if (status.phase === 'Failed' || status.phase === 'Succeeded') return status.message || status.reason || 'its pod ended';
  return metadata.deletionTimestamp ? 'its pod is being removed' : null;
}

const statusOf = ({ status = {} }: Pod, container: string): ContainerStatus | undefined =>
  status.containerStatuses?.find(({ name }) => name === container);

/** What a container is, for its errors. */
export interface Part {
  container: string;
  /** As in `The sidecar "db"`. */
  subject: string;
  advice: string;
  image: string;
  /** It may have ended again. */
  mayEnd?: boolean;
}

/**
 * Waits until all containers of a pod have started. Rejects with `build_failed` for an image that no node can get, else with `instance_failed`.
 */
export async function waitForStart(cluster: Cluster, name: string, parts: readonly Part[], signal: AbortSignal): Promise<Pod> {
  const deadline = Date.now() + START_MS;
  for (;;) {
    const pod = await cluster.find<Pod>(podPath(cluster, name), signal);
    if (pod === null || pod.metadata.deletionTimestamp) throw new HostingError('instance_failed', 'The pod was removed while it started.');
    const states = parts.map((part) => hasStarted(pod, part));
    if (states.every(Boolean)) return pod;
    const { phase, message, reason } = pod.status ?? {};
    if (phase === 'Failed') throw new HostingError('instance_failed', `The pod ended while it started: ${message || reason || 'unknown'}`);
    if (Date.now() > deadline) {
      const why = waitingFor(pod, pod.status?.containerStatuses?.[0]) ?? 'no node started it in time';
      throw new HostingError('instance_failed', `The pod did not start within ${START_MS / 60_000} minutes: ${why}`);
    }
    await sleep(POLL_MS, undefined, { signal });
  }
}

function hasStarted(pod: Pod, { container, subject, advice, image, mayEnd = false }: Part): boolean {
  const { waiting, running, terminated } = statusOf(pod, container)?.state ?? {};
  if (running || (mayEnd && terminated && terminated.exitCode !== START_ERROR)) return true;
  const reason = waiting?.reason ?? '';
  if (/^(?:ImagePullBackOff|ErrImageNeverPull|InvalidImageName)$/.test(reason)) {
    const said = waiting?.message ?? reason;
    throw new HostingError(
      'build_failed',
      `The nodes of the cluster cannot get the image ${image}: ${said}. Check its name, and that the cluster may pull it (PALESTRA_KUBERNETES_PULL_SECRETS).`,
    );
  }
  const failed = FAILED_STARTS.has(reason) ? (waiting?.message ?? reason) : terminated ? endText(terminated) : null;
  if (failed === null) return false;
  throw new HostingError('instance_failed', `${subject} could not be started: ${failed}. ${advice}`);
}

const endText = ({ exitCode, reason, message }: { exitCode: number; reason?: string; message?: string }): string =>
  `it ended with status ${exitCode} (${message?.trim() || reason || 'unknown'})`;
