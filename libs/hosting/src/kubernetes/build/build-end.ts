import { buildFailed } from '../../docker/build/build-errors.ts';
import type { BuildFailure } from '../../docker/build/build-output.ts';
import { HostingError } from '../../provider/hosting-error.ts';
import type { BuildLimits } from '../../provider/provider.port.ts';
import type { Pod } from '../instance/pod.ts';
import { CONTAINERS } from './build-job.ts';

/** Reasons for which a node cannot start a container, and tries again in vain. */
const IN_VAIN = new Set([
  'ImagePullBackOff',
  'ErrImageNeverPull',
  'InvalidImageName',
  'CreateContainerConfigError',
  'CreateContainerError',
  'RunContainerError',
]);

export const timedOut = (seconds: number, cause?: unknown): HostingError =>
  new HostingError('build_timeout', `The build took longer than ${seconds} s and was stopped.`, { cause });

/** Throws `build_failed` if the build cannot begin. Else why it does not yet; null when nothing is unusual. */
export function assertBuilds({ status = {} }: Pod): string | null {
  const context = status.initContainerStatuses?.find(({ name }) => name === CONTAINERS.context)?.state;
  const waiting = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])]
    .map(({ state }) => state?.waiting)
    .find((state) => IN_VAIN.has(state?.reason ?? ''));
  if (waiting) {
    const why = `${waiting.reason}: ${waiting.message ?? 'unknown'}`;
    throw failed(
      `The cluster cannot start the builder (${why}). The operator checks PALESTRA_KUBERNETES_BUILDER_IMAGE and PALESTRA_KUBERNETES_REGISTRY_SECRET.`,
    );
  }
  if (context?.terminated && context.terminated.exitCode !== 0) {
    const { exitCode, message } = context.terminated;
    throw failed(`The source did not reach the builder (status ${exitCode}): ${message?.trim() || 'the connection ended'}. Deploy again.`);
  }
  const scheduled = status.conditions?.find(({ type }) => type === 'PodScheduled');
  if (scheduled?.status !== 'False') return null;
  return `No node has room for the build: ${scheduled.message ?? 'unknown'}`;
}

/** The digest of the image, or the error of a build that ended without one. */
export function buildEnd({ status = {} }: Pod, failure: BuildFailure, limits: BuildLimits): string {
  const ended = status.containerStatuses?.find(({ name }) => name === CONTAINERS.build)?.state?.terminated;
  if (status.reason === 'DeadlineExceeded') throw timedOut(limits.seconds);
  if (status.reason === 'Evicted')
    throw failed(`The node stopped the build: ${status.message ?? 'it needs too much'} Write and install less in its steps.`);
  if (ended === undefined) throw failed(`The pod of the build ended (${status.reason ?? 'unknown'}). ${status.message ?? 'Deploy again.'}`);
  if (ended.exitCode !== 0) {
    const { message } = failure;
    if (failure.step === null && /^failed to push |\bfailed to authorize\b.*\bpush\b/.test(message)) {
      throw failed(
        `The registry did not take the image: ${message}. The operator checks PALESTRA_KUBERNETES_REGISTRY and PALESTRA_KUBERNETES_REGISTRY_SECRET.`,
        failure.line,
      );
    }
    throw buildFailed({ ...failure, isKilled: failure.isKilled || ended.reason === 'OOMKilled' || ended.exitCode === 137 }, limits);
  }
  const digest = /^sha256:[0-9a-f]{64}$/.exec(ended.message?.trim() ?? '')?.[0];
  if (digest === undefined) throw failed('The builder ended without the digest of the image. Deploy again.');
  return digest;
}

/** Of the last stage of a Dockerfile. What its base image exposes only the registry knows. */
export function exposedPort(dockerfile: string): number {
  const last = dockerfile.split(/^\s*FROM\s/im).at(-1)!;
  const ports = [...last.matchAll(/^\s*EXPOSE\s+(.+)$/gim)].flatMap(([, names]) => names!.trim().split(/\s+/));
  const numbers = new Set(ports.flatMap((port) => (/^\d+(?:\/tcp)?$/.test(port) ? [Number.parseInt(port, 10)] : [])));
  if (numbers.size === 1) return [...numbers][0]!;
  const found = numbers.size === 0 ? 'exposes no port' : `exposes several ports (${[...numbers].join(', ')})`;
  throw new HostingError(
    'source_invalid',
    `The Dockerfile ${found}. Say on which port the server listens: EXPOSE it as a number in the last stage, or set "port".`,
  );
}

const failed = (message: string, line?: number | null): HostingError =>
  new HostingError('build_failed', message, { line: line ?? undefined });
