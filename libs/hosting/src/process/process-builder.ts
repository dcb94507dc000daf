import { createHash, randomUUID } from 'node:crypto';
import { cp, mkdir, readdir, rename, stat, utimes } from 'node:fs/promises';
import path from 'node:path';
import { contextDigest } from '../docker/build/context-digest.ts';
import { needsPythonPackage } from '../docker/build/dockerfiles.ts';
import { pythonPackageFolder } from '../docker/build/python-package.ts';
import { HostingError } from '../provider/hosting-error.ts';
import type { Artifact, BuildPlan, BuildRequest, LogLine } from '../provider/provider.port.ts';
import { detectPlan } from '../source/detect-plan.ts';
import { folderSize } from '../source/folder-size.ts';
import { mebibytes } from '../source/source-limits.ts';
import { palestraPackage } from '../target/python-library.ts';
import { BuildLog } from './build-log.ts';
import { inheritedVariables } from './build-variables.ts';
import { installNode, installPython } from './install-steps.ts';
import { kill, processesWith } from './process-table.ts';
import { removeFolder } from './remove-folder.ts';
import { runCommand } from './run-command.ts';

type LocalPlan = Exclude<BuildPlan, { kind: 'dockerfile' | 'harbor' }>;

export interface BuilderOptions {
  folder: string;
  python: string;
  /** Path of the Python package `palestra`; null: the source beside this service. */
  pythonPackage: string | null;
}

/** Runs one program of a build. Rejects with `build_failed`, `build_timeout` or `build_cancelled`. */
export type BuildStep = (command: string, args: readonly string[], variables?: Readonly<Record<string, string>>) => Promise<void>;

/** A build or its version may be recorded a while after it is there. */
const PRUNE_AFTER_MS = 60 * 60 * 1_000;
/** Of a build that was killed. */
const ABANDONED_MS = 24 * 60 * 60 * 1_000;
const MAX_ENTRIES = 500_000;
/**
 * Installs folders for the process provider, one folder for each digest: `app` is the source, `venv` its Python packages. A build is whole or not
 * there. Programs of a build run as this user, with few variables, a temporary home, and limits of time and size.
 */
export class ProcessBuilder {
  readonly #builds: string;
  readonly #cache: string;
  readonly #options: BuilderOptions;

  constructor(options: BuilderOptions) {
    this.#options = options;
    this.#builds = path.join(options.folder, 'builds');
    this.#cache = path.join(options.folder, 'cache');
  }

  async build(request: BuildRequest, onLine: (line: LogLine) => void, signal: AbortSignal): Promise<Artifact> {
    const { source, limits } = request;
    if (source.kind !== 'folder')
      throw new HostingError('hosting_unsupported', 'The process provider runs no images. Use the docker provider.');
    if (!limits.network)
      throw new HostingError('hosting_unsupported', 'The process provider cannot build without network. Use the docker provider.');
    await mkdir(this.#builds, { recursive: true, mode: 0o700 });
    const log = new BuildLog(onLine);
    const plan = await localPlan(source.folder, source.plan, log);
    const interpreter =
      plan.kind === 'python' ? await this.#interpreter(signal) : { version: process.version, path: process.execPath, hasPip: false };
    const digest = digestOf(request.sourceDigest, plan, interpreter.version, await this.#ownPackage(plan, signal));
    const folder = path.join(this.#builds, digest.replace(':', '-'));
    const artifact: Artifact = { kind: 'folder', digest, folder, server: { ...plan.server, cwd: path.posix.join('app', plan.server.cwd) } };
    if (await touch(folder)) {
      log.add('An equal build is already there.', 'stdout');
      return artifact;
    }
    const made = path.join(this.#builds, `.new-${process.pid}-${randomUUID()}`);
    try {
      await mkdir(path.join(made, 'home'), { recursive: true, mode: 0o700 });
      await cp(source.folder, path.join(made, 'app'), { recursive: true, verbatimSymlinks: true, force: false, errorOnExist: true });
      const step = this.#stepsOf(request, made, log, signal);
      if (plan.kind === 'python') await installPython(plan, made, { ...interpreter, pythonPackage: this.#options.pythonPackage }, step);
      else if (plan.install) await installNode(made, step);
      await assertSize(made, limits.maxBytes, log);
      await removeFolder(path.join(made, 'home'));
      signal.throwIfAborted();
      await rename(made, folder).catch((error: NodeJS.ErrnoException) => {
        // Another deploy of the same source was faster.
        if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
      });
      return artifact;
    } catch (error) {
      if (signal.aborted) throw new HostingError('build_cancelled', 'The build was cancelled.', { cause: error });
      throw error;
    } finally {
      // Programs that left the process group of their step.
      for (const { pid } of await processesWith({ HOME: path.join(made, 'home') })) kill(pid, 'SIGKILL');
      await removeFolder(made);
    }
  }

  /** Deletes builds that `keep` does not name, except new ones, and what killed builds left. */
  async prune(keep: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const names = new Set([...keep].map((digest) => digest.replace(':', '-')));
    for (const name of await readdir(this.#builds).catch(() => [])) {
      signal.throwIfAborted();
      if (names.has(name)) continue;
      const folder = path.join(this.#builds, name);
      const ageMs = Date.now() - ((await stat(folder).catch(() => null))?.mtimeMs ?? Date.now());
      if (ageMs > (name.startsWith('.new-') ? ABANDONED_MS : PRUNE_AFTER_MS)) await removeFolder(folder);
    }
  }

  /** Digest of the Python package `palestra` that the build installs; null: it installs none. */
  async #ownPackage(plan: LocalPlan, signal: AbortSignal): Promise<string | null> {
    if (!needsPythonPackage(plan)) return null;
    return contextDigest([pythonPackageFolder(palestraPackage(this.#options.pythonPackage), '')], signal);
  }

  /** The Python itself, because a program of a version manager needs the home of this user. */
  async #interpreter(signal: AbortSignal): Promise<{ path: string; version: string; hasPip: boolean }> {
    const lines: string[] = [];
    const code = 'import sys, platform; print(sys.executable); print(platform.python_version()); import pip; print(pip.__version__)';
    const env = Object.fromEntries(Object.entries(process.env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
    const end = await runCommand(this.#options.python, ['-c', code], {
      cwd: this.#options.folder,
      env,
      signal,
      timeoutMs: 30_000,
      onLine: (text, stream) => stream === 'stdout' && lines.push(text),
    }).catch((error: unknown) => {
      signal.throwIfAborted();
      return { kind: 'failed' as const, error };
    });
    const [program, version, pip = ''] = lines;
    // Its status is 1 without pip.
    if (end.kind === 'exit' && program !== undefined && version !== undefined) return { path: program, version, hasPip: isRecentPip(pip) };
    throw new HostingError('hosting_unsupported', `This server has no Python (${this.#options.python}). Ask its operator to install it.`);
  }

  #stepsOf({ limits }: BuildRequest, made: string, log: BuildLog, signal: AbortSignal): BuildStep {
    const deadline = Date.now() + limits.seconds * 1_000;
    const { variables: inherited, cut } = inheritedVariables(process.env);
    for (const name of cut) log.add(`${name} of the server has a password, which builds do not get.`, 'stdout');
    const env = {
      ...inherited,
      HOME: path.join(made, 'home'),
      TMPDIR: path.join(made, 'home'),
      PIP_CACHE_DIR: path.join(this.#cache, 'pip'),
      UV_CACHE_DIR: path.join(this.#cache, 'uv'),
      // Instances write no bytecode, so without it each start would compile again.
      UV_COMPILE_BYTECODE: '1',
      npm_config_cache: path.join(this.#cache, 'npm'),
      CI: '1',
    };
    return async (command, args, variables = {}) => {
      const shown = [path.basename(command), ...args].join(' ').replaceAll(made, '.');
      log.begin(`$ ${shown}`);
      const end = await runCommand(command, args, {
        cwd: path.join(made, 'app'),
        env: { ...env, ...variables },
        signal,
        timeoutMs: Math.max(1, deadline - Date.now()),
        watch: () => assertSize(made, limits.maxBytes, log),
        onLine: (text, stream) => log.add(text, stream),
      });
      if (end.kind === 'late')
        throw new HostingError('build_timeout', `The build took longer than ${limits.seconds} s. The last program was: ${shown}`);
      if (end.kind === 'signal') throw log.failure(`${shown} was ended by ${end.signal}`);
      if (end.code !== 0) throw log.failure(`${shown} failed with status ${end.code}`);
    };
  }
}

const noHarbor = () =>
  new HostingError(
    'hosting_unsupported',
    'Tasks of Harbor run in containers, which the process provider does not have. Use the docker provider.',
  );

async function localPlan(folder: string, plan: BuildPlan, log: BuildLog): Promise<LocalPlan> {
  if (plan.kind === 'harbor') throw noHarbor();
  if (plan.kind !== 'dockerfile') return plan;
  const { plan: other } = await detectPlan(folder, { dockerfile: null }).catch((error: unknown) => {
    if (!(error instanceof HostingError)) throw error;
    throw new HostingError(
      'hosting_unsupported',
      `The process provider cannot build ${plan.dockerfile}. Use the docker provider. ${error.message}`,
    );
  });
  if (other.kind === 'harbor') throw noHarbor();
  if (other.kind === 'dockerfile') throw new Error('detectPlan returned a Dockerfile');
  log.add(`${plan.dockerfile} is ignored, because this server runs environments as processes.`, 'stdout');
  return other;
}

/** From 22.3 on, pip installs into the environment of another Python. */
function isRecentPip(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > 22 || (major === 22 && minor >= 3);
}

/** Everything that decides what the build is. */
const digestOf = (sourceDigest: string, plan: LocalPlan, version: string, ownPackage: string | null): string =>
  `sha256:${createHash('sha256')
    .update(JSON.stringify([sourceDigest, plan, version, ownPackage]))
    .digest('hex')}`;

async function assertSize(folder: string, maxBytes: number, log: BuildLog): Promise<void> {
  const { bytes, entries } = await folderSize(folder, { maxBytes, maxEntries: MAX_ENTRIES });
  if (bytes > maxBytes) throw log.failure(`The build is larger than ${mebibytes(maxBytes)}`);
  if (entries > MAX_ENTRIES) throw log.failure(`The build has more than ${MAX_ENTRIES} files`);
}

/** Whether the folder exists. Marks it as used, so that `prune` leaves it for a while. */
async function touch(folder: string): Promise<boolean> {
  const now = new Date();
  return utimes(folder, now, now).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false;
      throw error;
    },
  );
}
