import { HostingError } from '../../provider/hosting-error.ts';
import type { Artifact, BuildRequest, LogLine } from '../../provider/provider.port.ts';
import { type Cluster, isRefusal } from '../cluster/cluster.ts';
import { LABEL, selector } from '../cluster/names.ts';
import type { Guards } from '../instance/guards.ts';
import type { Placement } from '../instance/instance-pod.ts';
import type { Pod } from '../instance/pod.ts';
import { findDigest } from './image-digest.ts';

export interface BuilderOptions {
  cluster: Cluster;
  guards: Guards;
  installation: string;
  placement: Placement;
}

/** Longer than any build takes. */
const OLD_MS = 7_200_000;

/** Finds the digests of images. */
export class Builder {
  readonly #options: BuilderOptions;

  constructor(options: BuilderOptions) {
    this.#options = options;
  }

  async build(request: BuildRequest, onLine: (line: LogLine) => void, signal: AbortSignal): Promise<Artifact> {
    const deadline = AbortSignal.timeout(request.limits.seconds * 1_000);
    try {
      return await this.#build(request, onLine, AbortSignal.any([signal, deadline]));
    } catch (error) {
      if (signal.aborted) throw new HostingError('build_cancelled', 'The build was cancelled.', { cause: error });
      if (!deadline.aborted) throw error;
      throw new HostingError('build_timeout', `The build took longer than ${request.limits.seconds} s and was stopped.`, { cause: error });
    }
  }

  /** Deletes the pods of builds whose process died. Images are in registries, which have their own rules. */
  async prune(signal: AbortSignal): Promise<void> {
    const { cluster, installation } = this.#options;
    const path = `/api/v1/namespaces/${cluster.namespace}/pods`;
    const pods = await cluster.list<Pod>(path, selector({ [LABEL.installation]: installation, [LABEL.role]: 'build' }), signal);
    for (const { metadata } of pods) {
      if (Date.now() - new Date(metadata.creationTimestamp ?? 0).getTime() < OLD_MS) continue;
      await cluster.request({ method: 'DELETE', path: `${path}/${metadata.name}` }, signal).catch((error: unknown) => {
        if (!isRefusal(error, 404)) throw error;
      });
    }
  }

  async #build(request: BuildRequest, onLine: (line: LogLine) => void, signal: AbortSignal): Promise<Artifact> {
    const { source, deployId } = request;
    if (source.kind === 'folder') {
      throw new HostingError(
        'hosting_unsupported',
        'This cluster builds no folders. Push an image to a registry, and deploy it with --image.',
      );
    }
    const { image: name, port } = source;
    const say = (text: string) => onLine({ at: new Date(), stream: 'stdout', text });
    if (port === null) {
      throw new HostingError(
        'source_invalid',
        `Say on which port the server of ${name} listens ("port"): the cluster does not tell what an image exposes.`,
      );
    }
    await this.#options.guards.apply(signal);
    say(`Looking for ${name}`);
    const { image, digest } = await findDigest(name, deployId, this.#options, signal);
    say(`${name} is ${digest}`);
    return { kind: 'image', digest, image, port };
  }
}
