import { setTimeout as sleep } from 'node:timers/promises';
import { HostingError } from '../../provider/hosting-error.ts';
import { type Cluster, ClusterRefusal, isRefusal } from '../cluster/cluster.ts';
import { ANNOTATION } from '../cluster/names.ts';
import { isolatedContainer, isolatedPod, labelsOf, type Placement } from '../instance/instance-pod.ts';
import type { Pod } from '../instance/pod.ts';

export interface DigestOptions {
  cluster: Cluster;
  installation: string;
  placement: Placement;
}

export interface FoundImage {
  /** The name by which nodes get exactly this image. */
  image: string;
  /** `sha256:...` */
  digest: string;
}

const POLL_MS = 300;
/** A kubelet repeats the first attempt; then the image is not to be had. */
const ABSENT = new Set(['ImagePullBackOff', 'ErrImageNeverPull', 'InvalidImageName']);
const LIMITS = { cpu: '100m', memory: '64Mi', 'ephemeral-storage': '64Mi' };

/**
 * The digest of an image, which a node tells that has it: a pod of the image whose program does not exist. So nodes pull with their own
 * credentials, and this service connects to no registry that an author names. Rejects with `build_failed`.
 */
export async function findDigest(image: string, deployId: string, options: DigestOptions, signal: AbortSignal): Promise<FoundImage> {
  const { cluster } = options;
  const pods = `/api/v1/namespaces/${cluster.namespace}/pods`;
  const name = `palestra-image-${deployId}`;
  const path = `${pods}/${name}`;
  // What an earlier process left, perhaps of the same deploy.
  await remove(cluster, path, signal);
  try {
    await cluster.request({ method: 'POST', path: pods, body: digestPod(name, image, deployId, options) }, signal);
    for (;;) {
      const pod = await cluster.find<Pod>(path, signal);
      if (pod === null) throw new HostingError('build_failed', `The pod that looked for ${image} was removed. Deploy again.`);
      const found = imageOf(pod, image);
      if (found !== null) return found;
      await sleep(POLL_MS, undefined, { signal });
    }
  } catch (error) {
    if (error instanceof ClusterRefusal)
      throw new HostingError('build_failed', `The cluster refused the pod of the image: ${error.message}`, { cause: error });
    throw error;
  } finally {
    await remove(cluster, path, AbortSignal.timeout(10_000)).catch(() => {
      // The next prune removes it.
    });
  }
}

async function remove(cluster: Cluster, path: string, signal: AbortSignal): Promise<void> {
  try {
    await cluster.request({ method: 'DELETE', path, body: { gracePeriodSeconds: 0 } }, signal);
  } catch (error) {
    if (!isRefusal(error, 404)) throw error;
  }
}

function digestPod(name: string, image: string, deployId: string, { installation, placement }: DigestOptions) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      labels: labelsOf(installation, 'build', 'none'),
      annotations: { [ANNOTATION.deploy]: deployId },
    },
    spec: {
      ...isolatedPod(placement),
      activeDeadlineSeconds: 1_800,
      terminationGracePeriodSeconds: 1,
      containers: [
        {
          name: 'image',
          image,
          // A tag may name another image than the one that a node has.
          imagePullPolicy: pullPolicy(image),
          command: ['/palestra-never-runs'],
          resources: { limits: LIMITS, requests: LIMITS },
          securityContext: isolatedContainer,
        },
      ],
    },
  };
}

/** Images of `localhost/` are in no registry, and a digest always names the same image. */
const pullPolicy = (image: string) => (image.includes('@') || image.startsWith('localhost/') ? 'IfNotPresent' : 'Always');

/** Null while the node has not said it. */
function imageOf(pod: Pod, image: string): FoundImage | null {
  const { status = {} } = pod;
  const [container] = status.containerStatuses ?? [];
  const found = /^(?:docker-pullable:\/\/|docker:\/\/)?(?:(.+)@)?(sha256:[0-9a-f]{64})$/.exec(container?.imageID ?? '');
  if (found) return { image: found[1] === undefined ? image : `${found[1]}@${found[2]}`, digest: found[2]! };
  const { waiting } = container?.state ?? {};
  if (waiting?.reason && ABSENT.has(waiting.reason)) {
    const said = waiting.message ?? waiting.reason;
    throw new HostingError(
      'build_failed',
      `The nodes of the cluster cannot get the image ${image}: ${said}. Check its name, and that the cluster may pull it (PALESTRA_KUBERNETES_PULL_SECRETS).`,
    );
  }
  if (status.phase === 'Failed' || status.phase === 'Succeeded') {
    throw new HostingError(
      'build_failed',
      `The pod of the image ${image} ended before a node said its digest: ${status.message ?? status.reason ?? 'unknown'}.`,
    );
  }
  return null;
}
