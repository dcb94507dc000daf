import { HostingError } from '../../provider/hosting-error.ts';
import type { Artifact, BuildRequest, LogLine } from '../../provider/provider.port.ts';
import { type Cluster, isRefusal } from '../cluster/cluster.ts';
import { LABEL, selector } from '../cluster/names.ts';
import type { Guards } from '../instance/guards.ts';
import type { Placement } from '../instance/instance-pod.ts';
import type { Pod } from '../instance/pod.ts';
import { timedOut } from './build-end.ts';
import { FolderBuilder, type FolderBuilds } from './folder-builder.ts';
import { findDigest } from './image-digest.ts';

export interface BuilderOptions {
  cluster: Cluster;
  guards: Guards;
  installation: string;
  placement: Placement;
  /** Null: there is no registry, and folders are refused. */
  folders: FolderBuilds | null;
}

/** Longer than any build takes. */
const OLD_MS = 7_200_000;

/** Finds the digests of images, and builds folders. */
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
      throw timedOut(request.limits.seconds, error);
    }
  }

  /** Deletes the pods of images whose process died; Jobs have a deadline. Images are in registries, which have their own rules. */
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
    const { folders, guards } = this.#options;
    if (source.kind === 'folder') {
      const { plan } = source;
      if (folders === null) {
        throw new HostingError(
          'hosting_unsupported',
          'This cluster builds no folders: the operator has set no PALESTRA_KUBERNETES_REGISTRY. Push an image to a registry, and deploy it with --image.',
        );
      }
      if (plan.kind === 'harbor') {
        throw new HostingError('hosting_unsupported', 'Tasks of Harbor run with the engine "docker", not in a cluster.');
      }
      await guards.apply(signal);
      return new FolderBuilder({ ...this.#options, ...folders }).build({ ...source, plan }, request, onLine, signal);
    }
    const { image: name, port } = source;
    // The nodes have the credentials of all that was built here, for every author.
    if (folders !== null && name.toLowerCase().startsWith(`${folders.registry}/`)) {
      throw new HostingError(
        'source_invalid',
        `${name} is in the registry of this server, which is for its own builds. Deploy the folder again.`,
      );
    }
    const say = (text: string) => onLine({ at: new Date(), stream: 'stdout', text });
    if (port === null) {
      throw new HostingError(
        'source_invalid',
        `Say on which port the server of ${name} listens ("port"): the cluster does not tell what an image exposes.`,
      );
    }
    await guards.apply(signal);
    say(`Looking for ${name}`);
    const { image, digest } = await findDigest(name, deployId, this.#options, signal);
    say(`${name} is ${digest}`);
    return { kind: 'image', digest, image, port };
  }
}
