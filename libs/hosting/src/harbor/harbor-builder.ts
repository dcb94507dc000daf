import { createHash, randomUUID } from 'node:crypto';
import { cp, mkdir, rename, rm, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { ImageArtifact, ImageRequest } from '../docker/build/image-builder.ts';
import { inspectImage } from '../docker/build/image-pull.ts';
import type { Engine } from '../docker/engine/engine.ts';
import { BuildLog } from '../process/build-log.ts';
import { HostingError } from '../provider/hosting-error.ts';
import type { Artifact, BuildRequest, LogLine, RunSettings } from '../provider/provider.port.ts';
import { digestOf } from '../source/source-tree.ts';
import { nameFrom } from '../target/card.ts';
import { manifestFile, readManifest, TASKS } from './harbor-files.ts';
import { type HarborRun, missingVariables, taskStarter } from './harbor-run.ts';
import { asVerified, isSolvable, type OracleOptions, verifyOracle } from './oracle.ts';
import { type HarborTask, readTask } from './task-folder.ts';
import type { BuiltTask } from './trial.ts';
import { assertLimits } from './task-limits.ts';
import { resolveVariables } from './variables.ts';

export interface HarborBuilderOptions {
  engine: Engine;
  /** For builds, one folder for each digest, which `ProcessBuilder.prune` deletes. */
  folder: string;
  buildImage(request: ImageRequest, onLine: (line: LogLine) => void, signal: AbortSignal): Promise<ImageArtifact>;
  runOf(settings: RunSettings, signal: AbortSignal): Promise<HarborRun>;
}

export type HarborRequest = BuildRequest & { source: { kind: 'folder'; plan: { kind: 'harbor' } } };

/** Another number makes other builds of the same source. */
const FORMAT = 2;
/** Solutions that run at a deploy: of more tasks a sample. */
const MAX_ORACLES = 20;
const ORACLES_MS = 3_600_000;
/** No program of a task's image listens for this service. */
const NO_PORT = 1;

/** Builds the image of each task, verifies that its solution passes its tests, and keeps the tests in a folder. A build is whole or not there. */
export class HarborBuilder {
  readonly #options: HarborBuilderOptions;

  constructor(options: HarborBuilderOptions) {
    this.#options = options;
  }

  async build(request: HarborRequest, onLine: (line: LogLine) => void, signal: AbortSignal): Promise<Artifact> {
    const { source, sourceDigest, run } = request;
    if (run === undefined) throw new Error('A build of Harbor tasks needs to know how they run.');
    const digest = `sha256:${createHash('sha256')
      .update(JSON.stringify(['harbor', FORMAT, sourceDigest, source.plan]))
      .digest('hex')}`;
    const builds = path.join(this.#options.folder, 'builds');
    const folder = path.join(builds, digest.replace(':', '-'));
    const artifact = { kind: 'harbor', digest, folder } as const;
    const log = new BuildLog(onLine);
    if (await this.has(artifact, signal)) {
      // `prune` leaves it for a while.
      await utimes(folder, new Date(), new Date());
      log.add('An equal build is already there.', 'stdout');
      return artifact;
    }
    const made = path.join(builds, `.new-${process.pid}-${randomUUID()}`);
    await mkdir(path.join(made, TASKS), { recursive: true, mode: 0o700 });
    try {
      const tasks = await this.#build(request, made, log, signal);
      await writeFile(manifestFile(made), JSON.stringify({ tasks: await this.#verify(tasks, made, run, log, signal) }));
      // Not before: what still runs of a build that lost some images reads its tests there.
      if (!(await this.has(artifact, signal))) await rm(folder, { recursive: true, force: true, maxRetries: 3 });
      await rename(made, folder).catch((error: NodeJS.ErrnoException) => {
        // Another deploy of the same source was faster.
        if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
      });
      return artifact;
    } catch (error) {
      if (signal.aborted) throw new HostingError('build_cancelled', 'The build was cancelled.', { cause: error });
      throw error;
    } finally {
      await rm(made, { recursive: true, force: true, maxRetries: 3 });
    }
  }

  /** Whether the build and its images are there: somebody may have deleted them. */
  async has({ folder }: { folder: string }, signal: AbortSignal): Promise<boolean> {
    const manifest = await readManifest(folder);
    for (const image of new Set(manifest?.tasks.map(({ imageId }) => imageId)))
      if ((await inspectImage(this.#options.engine, image, signal)) === null) return false;
    return manifest !== null;
  }

  /** All tasks are read before the first image is built. */
  async #build(request: HarborRequest, made: string, log: BuildLog, signal: AbortSignal): Promise<BuiltTask[]> {
    const { folder, plan } = request.source;
    const { memoryMb: engineMb } = await this.#options.engine.info(signal);
    const known = { ...request.run!.variables, ...request.run!.secrets };
    const read: { task: HarborTask; from: string }[] = [];
    for (const name of plan.tasks) {
      const from = path.join(folder, name);
      const task = await readTask(from, name === '.' ? 'task' : path.posix.basename(name));
      assertVariables(task, known);
      read.push({ task: name === '.' ? withName(task) : task, from });
    }
    assertLimits(
      read.map(({ task }) => task),
      request.run!.resources,
      engineMb,
    );
    const denied = request.run!.egress.kind === 'none' ? read.filter(({ task }) => task.network.kind !== 'none').length : 0;
    if (denied > 0)
      log.add(`${denied} of ${read.length} tasks may use the network, but the setting egress is "none", so they have none.`, 'stderr');
    log.add(`Found ${read.length} ${read.length === 1 ? 'task' : 'tasks'} of Harbor.`, 'stdout');
    const built: BuiltTask[] = [];
    for (const { task, from } of read) {
      const { digest: imageId } = await this.#image(task, from, request, log, signal);
      await cp(from, path.join(made, TASKS, task.id), { recursive: true, verbatimSymlinks: true });
      built.push({ ...task, imageId, digest: await digestOf(from, signal), keepsProcesses: false });
    }
    return built;
  }

  async #image(task: HarborTask, from: string, request: HarborRequest, log: BuildLog, signal: AbortSignal): Promise<ImageArtifact> {
    const before = log.count + 1;
    const environment = path.join(from, 'environment');
    const plan = { kind: 'dockerfile' as const, dockerfile: 'Dockerfile', port: NO_PORT, variables: {} };
    const limits = { ...request.limits, seconds: Math.min(request.limits.seconds, task.buildSeconds) };
    log.begin(`Task ${task.id}: ${task.image === null ? 'building its image' : `getting its image ${task.image}`}.`);
    const source =
      task.image === null
        ? { kind: 'folder' as const, folder: environment, plan }
        : { kind: 'image' as const, image: task.image, port: NO_PORT };
    const sourceDigest = task.image === null ? await digestOf(environment, signal) : request.sourceDigest;
    try {
      return await this.#options.buildImage(
        { ...request, sourceDigest, limits, source },
        ({ text, stream }) => log.add(text, stream),
        signal,
      );
    } catch (error) {
      if (!(error instanceof HostingError) || signal.aborted) throw error;
      const line = error.line === null ? undefined : before + error.line;
      throw new HostingError(error.code, `Task ${task.id}: ${error.message}`, { cause: error, line });
    }
  }

  /** Runs solutions, of many tasks those of a sample, and as long as there is time. */
  async #verify(tasks: BuiltTask[], made: string, settings: RunSettings, log: BuildLog, signal: AbortSignal): Promise<BuiltTask[]> {
    const known = { ...settings.variables, ...settings.secrets };
    const start = taskStarter(this.#options.engine, await this.#options.runOf(settings, signal), known);
    const options: OracleOptions = { folder: path.join(made, TASKS), known, start, log };
    const solved = tasks.filter(isSolvable);
    if (solved.length < tasks.length)
      log.add(
        `${tasks.length - solved.length} of ${tasks.length} tasks have no solution, so whether they can be solved is not verified.`,
        'stderr',
      );
    const sample = sampleOf(solved, MAX_ORACLES);
    if (sample.length < solved.length) log.add(`The solutions of ${sample.length} of ${solved.length} tasks are verified.`, 'stdout');
    const verified = new Map<string, BuiltTask>();
    const deadline = Date.now() + ORACLES_MS;
    for (const task of sample) {
      if (Date.now() > deadline) {
        log.add(`The time is over: ${sample.length - verified.size} solutions are not verified.`, 'stderr');
        break;
      }
      verified.set(task.id, await verifyOracle(task, options, signal));
    }
    return asVerified(tasks, verified);
  }
}

function assertVariables(task: HarborTask, known: Readonly<Record<string, string>>): void {
  const all = [task.variables, task.solutionVariables, ...task.steps.map(({ verifierVariables }) => verifierVariables)];
  const missing = all.flatMap((variables) => resolveVariables(variables, known).missing);
  if (missing.length > 0) throw missingVariables(task.id, missing);
}

/** A task that was deployed alone has lost the name of its folder. */
function withName(task: HarborTask): HarborTask {
  if (task.name === task.id) return task;
  return { ...task, id: nameFrom(task.name.split('/').at(-1)!) || task.id };
}

/** `count` of a list, at equal distances. */
const sampleOf = <T>(all: readonly T[], count: number): T[] =>
  all.length <= count ? [...all] : Array.from({ length: count }, (_, index) => all[Math.floor((index * all.length) / count)]!);
