import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { HostingError } from '../../provider/hosting-error.ts';
import type { Artifact, BuildRequest, LogLine } from '../../provider/provider.port.ts';
import { type Engine, EngineError } from '../engine/engine.ts';
import { LABEL, names } from '../engine/names.ts';
import { AbandonedLayers, removeLayer } from './abandoned-layers.ts';
import { type BaseImage, ensureBases, nameImages } from './base-images.ts';
import { buildContext, DOCKERFILE } from './build-context.ts';
import { buildFailed, tooMuchDisk } from './build-errors.ts';
import { BuildOutput } from './build-output.ts';
import { type BuildSandbox, openBuildSandbox, removeOldSandboxes } from './build-sandbox.ts';
import { contextDigest } from './context-digest.ts';
import { assertNoBuildKit } from './dockerfiles.ts';
import { contextFolders, dockerfileOf, type FolderSource, portOf } from './folder-source.ts';
import { publicImageName } from './image-name.ts';
import { ensureImage, ensureTagged, type ImageInspection, inspectImage, normalId } from './image-pull.ts';
import { readLines } from './json-lines.ts';
import { PodmanTriggers } from './podman-triggers.ts';

export interface BuilderOptions {
  engine: Engine;
  installation: string;
  images: { python: string; node: string };
  /** CIDRs of private addresses that builds may reach too. */
  reachable: readonly string[];
  /** Path of the Python package `palestra`; null: the source beside this service. */
  pythonPackage: string | null;
}

export type ImageArtifact = Artifact & { kind: 'image' };
type OnLine = (line: LogLine) => void;
/** What this builder builds: one image. */
export type ImageRequest = BuildRequest & { source: FolderSource | { kind: 'image' } };

/** Time for the upload of a folder; then the answer begins. */
const UPLOAD_MS = 300_000;
/** The kernel shares processors among builds by this period. */
const CPU_PERIOD_US = 100_000;
const BUILD_CPUS = 2;
const REMOVE_MS = 60_000;

/** Images from folders and by name. An image that was built or pulled has a tag of the installation, so that `prune` finds it. */
export class ImageBuilder {
  readonly #options: BuilderOptions;
  readonly #abandoned = new AbandonedLayers();
  readonly #triggers = new PodmanTriggers();

  constructor(options: BuilderOptions) {
    this.#options = options;
  }

  async build(request: ImageRequest, onLine: OnLine, signal: AbortSignal): Promise<ImageArtifact> {
    const deadline = AbortSignal.timeout(request.limits.seconds * 1_000);
    const stop = AbortSignal.any([signal, deadline]);
    const { source } = request;
    try {
      return await (source.kind === 'image'
        ? this.#named(source.image, source.port, request, onLine, stop)
        : this.#folder(source, request, onLine, stop));
    } catch (error) {
      if (signal.aborted) throw new HostingError('build_cancelled', 'The build was cancelled.', { cause: error });
      if (deadline.aborted) {
        throw new HostingError('build_timeout', `The build took longer than ${request.limits.seconds} s and was stopped.`, {
          cause: error,
        });
      }
      if (error instanceof EngineError)
        throw new HostingError('build_failed', `The engine refused the build: ${error.message}`, { cause: error });
      throw error;
    }
  }

  /** Removes images with a tag of the installation whose ids are not in `keep`. One that a container uses stays until the next time. */
  async prune(keep: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const { engine } = this.#options;
    const ours = `${names.images(this.#options.installation)}:`;
    await removeOldSandboxes(engine, this.#options.installation, signal);
    await this.#abandoned.removeOld(engine, signal);
    const images = await engine.request<{ Id: string; RepoTags?: string[] | null }[]>({ method: 'GET', path: '/images/json' }, signal);
    const containers = { method: 'GET', path: '/containers/json', query: { all: true } } as const;
    const used = new Set((await engine.request<{ ImageID?: string }[]>(containers, signal)).map(({ ImageID }) => normalId(ImageID ?? '')));
    for (const { Id, RepoTags } of images) {
      const tags = (RepoTags ?? []).filter((tag) => tag.startsWith(ours));
      if (tags.length === 0 || keep.has(normalId(Id)) || used.has(normalId(Id))) continue;
      // What this service has pulled belongs to nobody else, whatever its other names are.
      const all = tags.some((tag) => tag.startsWith(`${ours}pulled-`)) ? [...RepoTags!, Id] : tags;
      for (const name of all) {
        await engine.request({ method: 'DELETE', path: `/images/${name}` }, signal).catch((error: unknown) => {
          if (!(error instanceof EngineError)) throw error;
        });
      }
    }
  }

  async #named(name: string, port: number | null, request: BuildRequest, onLine: OnLine, signal: AbortSignal): Promise<ImageArtifact> {
    const { engine, installation } = this.#options;
    const image = publicImageName(name);
    const found = await ensureTagged(engine, installation, image, onLine, signal);
    onLine({ at: new Date(), stream: 'stdout', text: `${image} is ${found.RepoDigests?.[0] ?? normalId(found.Id)}` });
    return artifactOf(found, port, `The image ${image}`, request);
  }

  async #folder(source: FolderSource, request: BuildRequest, onLine: OnLine, signal: AbortSignal): Promise<ImageArtifact> {
    const { engine, installation } = this.#options;
    const { plan } = source;
    const { dockerfile, images } = await this.#dockerfile(source, request.buildArguments, signal);
    const port = portOf(plan);
    const folders = await contextFolders(source, this.#options);
    // The tag is the key of the cache, with what this release of the service adds. A label would not do: a Dockerfile may set any.
    const key = createHash('sha256')
      .update(JSON.stringify([request.sourceDigest, dockerfile, request.buildArguments, await contextDigest(folders.slice(1), signal)]))
      .digest('hex');
    const tag = `${names.images(installation)}:${key.slice(0, 40)}`;
    const cached = await inspectImage(engine, tag, signal);
    if (cached) {
      onLine({
        at: new Date(),
        stream: 'stdout',
        text: `The image of an earlier build of the same source is used: ${normalId(cached.Id)}`,
      });
      return artifactOf(cached, port, 'The image', request);
    }
    const context = buildContext(folders, dockerfile, signal);
    await this.#run(context, images, tag, request, onLine, signal);
    const built = await inspectImage(engine, tag, signal);
    if (!built)
      throw new HostingError('build_failed', 'The builder ended without an image and without an error. See the engine’s own log.');
    try {
      return artifactOf(built, port, 'The Dockerfile', request);
    } catch (error) {
      await engine.request({ method: 'DELETE', path: `/images/${tag}` }, signal).catch(() => {});
      throw error;
    }
  }

  async #dockerfile(source: FolderSource, buildArguments: BuildRequest['buildArguments'], signal: AbortSignal) {
    const written = await dockerfileOf(source, this.#options);
    if (source.plan.kind !== 'dockerfile') return { dockerfile: written, images: [] };
    if (!(await this.#options.engine.info(signal)).podman) assertNoBuildKit(written);
    return nameImages(written, buildArguments);
  }

  async #run(
    context: Readable,
    images: readonly BaseImage[],
    tag: string,
    request: BuildRequest,
    onLine: OnLine,
    signal: AbortSignal,
  ): Promise<void> {
    const { engine } = this.#options;
    const { limits } = request;
    const output = new BuildOutput(onLine);
    let pullLines = 0;
    const onPullLine = (line: LogLine) => {
      pullLines += 1;
      onLine(line);
    };
    let unreadable: Error | null = null;
    context.on('error', (error) => (unreadable = error));
    const stop = new AbortController();
    const either = AbortSignal.any([signal, stop.signal]);
    let sandbox: BuildSandbox | null = null;
    try {
      sandbox = await openBuildSandbox(engine, { ...this.#options, image: await this.#nodeImage(either), limits }, either);
      void sandbox.diskFull.then(() => stop.abort(tooMuchDisk(limits)));
      await ensureBases(engine, images, this.#triggers, onPullLine, either);
      const stream = await this.#start(context, tag, request, sandbox, either);
      try {
        for await (const line of readLines(stream)) output.push(line);
      } finally {
        // Closes the connection: the engine stops a build that is not finished.
        stream.destroy();
      }
      if (output.failure?.isKilled && (await sandbox.wasDiskFull())) stop.abort(tooMuchDisk(limits));
      either.throwIfAborted();
    } catch (error) {
      if (unreadable !== null && !either.aborted) {
        throw new HostingError('source_invalid', `The source cannot be read: ${(unreadable as Error).message}`, { cause: error });
      }
      throw engine.failure(error, either);
    } finally {
      context.destroy();
      await sandbox?.close();
      output.end();
      await this.#leave(output, stop.signal.aborted, signal.aborted);
    }
    const { failure } = output;
    if (failure !== null) throw buildFailed({ ...failure, line: failure.line === null ? null : pullLines + failure.line }, limits);
  }

  /** A build that did not end well leaves the images of its first steps. */
  async #leave({ layer, failure }: BuildOutput, isDiskFull: boolean, isStopped: boolean): Promise<void> {
    if (layer === null || (!isDiskFull && !isStopped && failure === null)) return;
    if (!isDiskFull) return this.#abandoned.add(layer);
    await removeLayer(this.#options.engine, layer, AbortSignal.timeout(REMOVE_MS)).catch(() => this.#abandoned.add(layer));
  }

  #nodeImage(signal: AbortSignal): Promise<string> {
    return ensureImage(this.#options.engine, this.#options.images.node, UPLOAD_MS, signal);
  }

  #start(
    context: Readable,
    tag: string,
    { limits, buildArguments }: BuildRequest,
    sandbox: BuildSandbox,
    signal: AbortSignal,
  ): Promise<Readable> {
    const { engine, installation } = this.#options;
    const memory = limits.memoryMb * 2 ** 20;
    const query = {
      t: tag,
      dockerfile: DOCKERFILE,
      rm: true,
      forcerm: true,
      buildargs: { ...sandbox.buildArguments, ...buildArguments },
      labels: { [LABEL.installation]: installation },
      // Docker's classic builder: BuildKit takes no limits.
      version: '1',
      memory,
      memswap: memory,
      cpuperiod: CPU_PERIOD_US,
      cpuquota: CPU_PERIOD_US * BUILD_CPUS,
      ...sandbox.query,
    };
    return engine.stream({ method: 'POST', path: '/build', query, archive: context, deadlineMs: UPLOAD_MS }, signal);
  }
}

/** Checks the size and finds the port. `what`: the subject of an error. */
function artifactOf(image: ImageInspection, port: number | null, what: string, { limits }: BuildRequest): ImageArtifact {
  const digest = normalId(image.Id);
  if (image.Size > limits.maxBytes) {
    const [size, most] = [image.Size, limits.maxBytes].map((bytes) => Math.ceil(bytes / 2 ** 20));
    throw new HostingError(
      'build_failed',
      `The image has ${size} MB; at most ${most} MB are allowed. Use a smaller base image or fewer packages.`,
    );
  }
  return { kind: 'image', digest, image: digest, port: port ?? exposedPort(image, what) };
}

function exposedPort({ Config }: ImageInspection, what: string): number {
  const ports = Object.keys(Config?.ExposedPorts ?? {}).flatMap((port) =>
    /^\d+(?:\/tcp)?$/.test(port) ? [Number.parseInt(port, 10)] : [],
  );
  if (ports.length === 1) return ports[0]!;
  const found = ports.length === 0 ? 'exposes no port' : `exposes several ports (${ports.join(', ')})`;
  throw new HostingError('source_invalid', `${what} ${found}. Say on which port the server listens: EXPOSE it, or set "port".`);
}
