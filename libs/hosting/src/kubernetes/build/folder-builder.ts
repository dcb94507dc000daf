import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { buildContext } from '../../docker/build/build-context.ts';
import { contextFolders, dockerfileOf, type FolderSource, portOf } from '../../docker/build/folder-source.ts';
import { HostingError } from '../../provider/hosting-error.ts';
import type { Artifact, BuildRequest, LogLine } from '../../provider/provider.port.ts';
import { type Cluster, ClusterRefusal, isRefusal } from '../cluster/cluster.ts';
import { LABEL, selector } from '../cluster/names.ts';
import type { Pod } from '../instance/pod.ts';
import { followLog } from '../instance/pod-logs.ts';
import { buildJob, buildJobName, type BuildJobOptions, CONTAINERS } from './build-job.ts';
import { assertBuilds, buildEnd, exposedPort, timedOut } from './build-end.ts';
import { BuildKitOutput } from './buildkit-output.ts';
import { sendInput } from './context-upload.ts';

/** How folders are built. */
export interface FolderBuilds extends Pick<BuildJobOptions, 'builderImage' | 'registrySecret'> {
  /** Prefix of repositories to which builds push, and from which nodes pull, as in `registry.example/palestra`. */
  registry: string;
  /** Base images of folders without a Dockerfile. */
  images: { python: string; node: string };
  /** Path of the Python package `palestra`; null: the source beside this service. */
  pythonPackage: string | null;
}

interface FolderBuilderOptions extends FolderBuilds, BuildJobOptions {
  cluster: Cluster;
}

interface Job {
  metadata: { uid: string };
  status?: { conditions?: { type: string; status: string; reason?: string }[] };
}

const POLL_MS = 300;
const REMOVE_MS = 10_000;
/** Without a pod until then, the author is told where to look. */
const NO_POD_MS = 30_000;

/** Builds folders: each in a Job with BuildKit, which pushes the image to the registry. */
export class FolderBuilder {
  readonly #options: FolderBuilderOptions;

  constructor(options: FolderBuilderOptions) {
    this.#options = options;
  }

  async build(source: FolderSource, request: BuildRequest, onLine: (line: LogLine) => void, signal: AbortSignal): Promise<Artifact> {
    const { cluster, registry } = this.#options;
    const dockerfile = await dockerfileOf(source, this.#options);
    const port = portOf(source.plan) ?? exposedPort(dockerfile);
    const folders = await contextFolders(source, this.#options);
    const context = () => buildContext(folders, dockerfile, signal);
    const size = await sizeOf(context(), signal);
    const repository = `${registry}/environments`;
    const image = `${repository}:build-${this.#secretName(request.deployId)}`;
    const cache = request.cacheKey === undefined ? null : `${repository}:cache-${this.#secretName(request.cacheKey)}`;
    const path = `${this.#jobs}/${buildJobName(request.deployId)}`;
    // What an earlier process left of the same deploy.
    await this.#removeJob(path, signal);
    try {
      const body = buildJob({ request, size, image, cache }, this.#options);
      const job = await cluster.request<Job>({ method: 'POST', path: this.#jobs, body }, signal);
      const digest = await this.#run(job, path, request, { context, onLine }, signal);
      return { kind: 'image', digest, image: `${repository}@${digest}`, port };
    } catch (error) {
      if (!(error instanceof ClusterRefusal)) throw error;
      throw new HostingError('build_failed', `The cluster refused the build: ${error.message}`, { cause: error });
    } finally {
      await this.#removeJob(path, AbortSignal.timeout(REMOVE_MS)).catch(() => {
        // Its deadline ends it, and then the cluster removes it.
      });
    }
  }

  get #jobs(): string {
    return `/apis/batch/v1/namespaces/${this.#options.cluster.namespace}/jobs`;
  }

  /** Authors of other environments cannot guess it: a Dockerfile may name any image that the credentials of the registry open. */
  #secretName(id: string): string {
    return createHash('sha256').update(`${this.#options.installation}:${id}`).digest('hex').slice(0, 40);
  }

  /** The digest of the image. */
  async #run(
    job: Job,
    path: string,
    { deployId, limits }: BuildRequest,
    { context, onLine }: { context: () => ReturnType<typeof buildContext>; onLine: (line: LogLine) => void },
    signal: AbortSignal,
  ): Promise<string> {
    const { cluster } = this.#options;
    const output = new BuildKitOutput(onLine);
    const say = (text: string) => onLine({ at: new Date(), stream: 'stdout', text });
    const until = async (is: (pod: Pod) => boolean): Promise<Pod> => {
      const since = performance.now();
      for (let isTold = false; ; await sleep(POLL_MS, undefined, { signal })) {
        const pod = await this.#podOf(job, signal);
        if (pod === null) await this.#assertRuns(path, limits.seconds, signal);
        const waiting = pod === null ? noPod(deployId) : assertBuilds(pod);
        if (pod !== null && is(pod)) return pod;
        if (isTold || waiting === null || performance.now() - since < NO_POD_MS) continue;
        say(waiting);
        isTold = true;
      }
    };
    const { metadata } = await until((pod) => stateOf(pod, CONTAINERS.context)?.running !== undefined);
    await sendInput(cluster, { pod: metadata.name, container: CONTAINERS.context }, context(), signal);
    const hasEnded = (pod: Pod) => pod.status?.phase === 'Failed' || stateOf(pod, CONTAINERS.build)?.terminated !== undefined;
    await until((pod) => hasEnded(pod) || stateOf(pod, CONTAINERS.build)?.running !== undefined);
    try {
      for await (const line of followLog({ cluster, pod: metadata.name, container: CONTAINERS.build }, null, signal)) output.push(line);
    } finally {
      output.end();
    }
    const ended = await until(hasEnded);
    return buildEnd(ended, output.failure, limits);
  }

  /** Null before the cluster has made it, and after it removed it. */
  async #podOf({ metadata }: Job, signal: AbortSignal): Promise<Pod | null> {
    const { cluster, installation } = this.#options;
    const labels = selector({ [LABEL.installation]: installation, 'batch.kubernetes.io/controller-uid': metadata.uid });
    return (await cluster.list<Pod>(`/api/v1/namespaces/${cluster.namespace}/pods`, labels, signal))[0] ?? null;
  }

  /** Throws if the Job has ended or is gone. */
  async #assertRuns(path: string, seconds: number, signal: AbortSignal): Promise<void> {
    const job = await this.#options.cluster.find<Job>(path, signal);
    if (job === null) throw new HostingError('build_failed', 'The Job of the build was removed. Deploy again.');
    const failed = job.status?.conditions?.find(({ type, status }) => type === 'Failed' && status === 'True');
    if (failed?.reason === 'DeadlineExceeded') throw timedOut(seconds);
    if (failed) throw new HostingError('build_failed', `The pod of the build was removed (${failed.reason ?? 'unknown'}). Deploy again.`);
  }

  /** With its pod. Resolves when both are gone. */
  async #removeJob(path: string, signal: AbortSignal): Promise<void> {
    const { cluster } = this.#options;
    try {
      await cluster.request({ method: 'DELETE', path, body: { propagationPolicy: 'Foreground' } }, signal);
    } catch (error) {
      if (isRefusal(error, 404)) return;
      throw error;
    }
    while ((await cluster.find(path, signal)) !== null) await sleep(POLL_MS, undefined, { signal });
  }
}

/** A quota, or a namespace that does not admit such pods; only events of the Job say it, which this service may not read. */
const noPod = (deployId: string): string =>
  `The cluster has made no pod for the build yet. The operator sees why with "kubectl describe job ${buildJobName(deployId)}".`;

const stateOf = ({ status = {} }: Pod, container: string) =>
  [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])].find(({ name }) => name === container)?.state;

/** Throws `source_invalid` if a file cannot be read. */
async function sizeOf(stream: AsyncIterable<Buffer>, signal: AbortSignal): Promise<number> {
  let size = 0;
  try {
    for await (const chunk of stream) size += chunk.length;
  } catch (error) {
    signal.throwIfAborted();
    throw new HostingError('source_invalid', `The source cannot be read: ${(error as Error).message}`, { cause: error });
  }
  return size;
}
