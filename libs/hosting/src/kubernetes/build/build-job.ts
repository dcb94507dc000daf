import type { V1Container, V1Job } from '@kubernetes/client-node';
import { DOCKERFILE } from '../../docker/build/build-context.ts';
import type { BuildRequest } from '../../provider/provider.port.ts';
import { LABEL } from '../cluster/names.ts';
import { isolatedContainer, isolatedPod, labelsOf, literal, type Placement } from '../instance/instance-pod.ts';

export interface BuildJobOptions {
  installation: string;
  placement: Placement;
  /** With BuildKit in rootless mode. */
  builderImage: string;
  /** Secret with the credentials of the registry, as `.dockerconfigjson`; null: it needs none. */
  registrySecret: string | null;
}

interface BuildJobInput {
  request: Pick<BuildRequest, 'deployId' | 'buildArguments' | 'limits'>;
  /** Bytes of the context as a tar archive. */
  size: number;
  /** Names in the registry. `cache` null: no layers are kept for later builds. */
  image: string;
  cache: string | null;
}

/** Containers of the pod. `context` reads the folder from its standard input, then `build` builds it. */
export const CONTAINERS = { context: 'context', build: 'build' } as const;

/** The user of the image: another one would need another image. */
const BUILDER = 1_000;
/** As for builds on other engines. */
const CPUS = '2';
const CONTEXT_AT = '/context';
/** The default of BuildKit in rootless mode. As a folder of the image it would be mounted with `nosuid`, with which layers lose rights. */
const STATE_AT = '/home/user/.local/share/buildkit';
const CREDENTIALS_AT = '/registry';
/** A finished Job that nobody has removed: this service died. */
const KEPT_S = 600;

/** The Dockerfile is the last file of the archive, so with it the context is whole. */
const readContext = (size: number): string => `head -c ${size} | tar -x -C ${CONTEXT_AT} && test -f ${CONTEXT_AT}/${DOCKERFILE}`;
/** A node gives what stands in the last file to the API server, as the message of the container. */
const BUILD =
  'buildctl-daemonless.sh "$@" --metadata-file /tmp/metadata.json || exit $?; ' +
  `sed -n 's/.*"containerimage.digest": *"\\(sha256:[0-9a-f]*\\)".*/\\1/p' /tmp/metadata.json > /dev/termination-log`;

export const buildJobName = (deployId: string): string => `palestra-build-${deployId}`;

/**
 * One build, as in BuildKit's example of a Job in rootless mode: examples/kubernetes/job.rootless.yaml of moby/buildkit. Its pod ends with the
 * digest of the image as its message, which then is in the registry.
 */
export function buildJob(input: BuildJobInput, options: BuildJobOptions): V1Job {
  const { deployId, limits } = input.request;
  const labels = { ...labelsOf(options.installation, 'build', 'build'), [LABEL.deploy]: deployId };
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: buildJobName(deployId), labels },
    spec: {
      backoffLimit: 0,
      activeDeadlineSeconds: limits.seconds,
      ttlSecondsAfterFinished: KEPT_S,
      template: {
        metadata: { labels, annotations: { 'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false' } },
        spec: {
          ...isolatedPod(options.placement),
          terminationGracePeriodSeconds: 1,
          securityContext: { runAsNonRoot: true, runAsUser: BUILDER, runAsGroup: BUILDER },
          initContainers: [contextContainer(input, options)],
          containers: [buildContainer(input, options)],
          volumes: [
            { name: 'context', emptyDir: {} },
            { name: 'state', emptyDir: {} },
            ...(options.registrySecret === null
              ? []
              : [
                  {
                    name: 'registry',
                    secret: {
                      secretName: options.registrySecret,
                      items: [{ key: '.dockerconfigjson', path: 'config.json' }],
                      defaultMode: 0o444,
                    },
                  },
                ]),
          ],
        },
      },
    },
  };
}

const contextContainer = ({ size, request }: BuildJobInput, { builderImage }: BuildJobOptions): V1Container => ({
  name: CONTAINERS.context,
  image: builderImage,
  imagePullPolicy: 'IfNotPresent',
  command: ['sh', '-c', readContext(size)],
  // It ends when the connection of this service ends.
  stdin: true,
  stdinOnce: true,
  terminationMessagePolicy: 'FallbackToLogsOnError',
  resources: resourcesOf(request),
  securityContext: { ...isolatedContainer, seccompProfile: { type: 'RuntimeDefault' } },
  volumeMounts: [{ name: 'context', mountPath: CONTEXT_AT }],
});

function buildContainer(input: BuildJobInput, { builderImage, registrySecret }: BuildJobOptions): V1Container {
  const hasSecret = registrySecret !== null;
  return {
    name: CONTAINERS.build,
    image: builderImage,
    imagePullPolicy: 'IfNotPresent',
    command: ['sh', '-c', BUILD, 'build'],
    args: buildctlArguments(input).map(literal),
    env: [
      // A step sees the processes of the builder. A namespace of its own would need /proc without masks, which takes a privileged pod.
      { name: 'BUILDKITD_FLAGS', value: '--oci-worker-no-process-sandbox' },
      { name: 'BUILDCTL_CONNECT_RETRIES_MAX', value: '50' },
      ...(hasSecret ? [{ name: 'DOCKER_CONFIG', value: CREDENTIALS_AT }] : []),
    ],
    resources: resourcesOf(input.request),
    // The profiles of nodes forbid to mount and to make namespaces, which BuildKit does as the user that it is. It is not privileged.
    securityContext: {
      privileged: false,
      runAsNonRoot: true,
      seccompProfile: { type: 'Unconfined' },
      appArmorProfile: { type: 'Unconfined' },
    },
    volumeMounts: [
      { name: 'context', mountPath: CONTEXT_AT, readOnly: true },
      { name: 'state', mountPath: STATE_AT },
      ...(hasSecret ? [{ name: 'registry', mountPath: CREDENTIALS_AT, readOnly: true }] : []),
    ],
  };
}

function buildctlArguments({ request: { buildArguments, limits }, image, cache }: BuildJobInput): string[] {
  return [
    'build',
    '--progress=plain',
    '--frontend=dockerfile.v0',
    `--local=context=${CONTEXT_AT}`,
    `--local=dockerfile=${CONTEXT_AT}`,
    `--opt=filename=${DOCKERFILE}`,
    ...Object.entries(buildArguments).map(([name, value]) => `--opt=build-arg:${name}=${value}`),
    ...(limits.network ? [] : ['--opt=force-network-mode=none']),
    `--output=type=image,name=${image},push=true`,
    ...(cache === null ? [] : [`--import-cache=type=registry,ref=${cache}`, `--export-cache=type=registry,ref=${cache},ignore-error=true`]),
  ];
}

/** The disk of a build is a limit and no request: few nodes have that much to give away. */
function resourcesOf({ limits: { memoryMb, maxBytes } }: BuildJobInput['request']) {
  const limits = { cpu: CPUS, memory: `${Math.round(memoryMb)}Mi` };
  return {
    limits: { ...limits, 'ephemeral-storage': `${Math.ceil(maxBytes / 2 ** 20)}Mi` },
    requests: { ...limits, 'ephemeral-storage': '1Gi' },
  };
}
