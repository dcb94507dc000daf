import { existsSync } from 'node:fs';
import path from 'node:path';
import { HostingError } from '../provider/hosting-error.ts';
import type {
  Artifact,
  BuildRequest,
  Capabilities,
  InstanceSpec,
  InstanceStats,
  LogLine,
  Provider,
  RunningInstance,
} from '../provider/provider.port.ts';
import { kitServerFile } from '../target/serve-command.ts';
import { FILES, type InstanceOrder, readJson } from './instance-files.ts';
import { readInstanceLog } from './instance-log.ts';
import { ProcessBuilder } from './process-builder.ts';
import { ProcessInstances } from './process-instances.ts';
import { memoryOf } from './process-table.ts';

export interface ProcessProviderOptions {
  /** Absolute; it has builds and instances. */
  folder: string;
  /** Where instances listen. */
  host?: string;
  /** What builds environments in Python. */
  python?: string;
  /** Path of the Python package `palestra`, its folder or wheel; default: the source beside this service. */
  pythonPackage?: string;
}

const CAPABILITIES: Capabilities = { isolation: ['none'], egress: ['open'], gpus: false, limits: false, maxMemoryMb: null, builds: true };

/** Variables of this process that instances get. */
const INHERITED = ['LANG', 'LC_ALL', 'TZ', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'NODE_EXTRA_CA_CERTS'];

/**
 * Runs instances as processes of this user, for code that the operator trusts: they can read and connect to what this service can. They outlive
 * the service, which finds them again by their folders. Needs Linux.
 */
export class ProcessProvider implements Provider {
  readonly name = 'process' as const;
  readonly #host: string;
  readonly #builder: ProcessBuilder;
  readonly #instances: ProcessInstances;
  readonly #folder: string;
  /** Processor seconds of each instance at the last call of `stats`. */
  readonly #samples = new Map<string, { atMs: number; cpuSeconds: number }>();

  constructor({ folder, host = '127.0.0.1', python = 'python3', pythonPackage }: ProcessProviderOptions) {
    this.#host = host;
    this.#folder = path.join(folder, 'instances');
    this.#builder = new ProcessBuilder({ folder, python, pythonPackage: pythonPackage ?? null });
    this.#instances = new ProcessInstances(this.#folder);
  }

  async capabilities(): Promise<Capabilities> {
    if (process.platform !== 'linux')
      throw new HostingError(
        'hosting_unsupported',
        'Environments run as processes on Linux only. Use the docker provider on this machine.',
      );
    return CAPABILITIES;
  }

  build(request: BuildRequest, onLine: (line: LogLine) => void, signal: AbortSignal): Promise<Artifact> {
    return this.#builder.build(request, onLine, signal);
  }

  async has(artifact: Artifact): Promise<boolean> {
    return artifact.kind !== 'folder' || existsSync(artifact.folder);
  }

  async ensure(spec: InstanceSpec, signal: AbortSignal): Promise<RunningInstance> {
    const refused = refusal(spec);
    if (refused !== null) throw new HostingError('hosting_unsupported', `The process provider ${refused}`);
    return this.#instances.start(this.#orderOf(spec), spec.secrets, signal);
  }

  list(): Promise<RunningInstance[]> {
    return this.#instances.list();
  }

  async remove(id: string, graceMs: number, signal: AbortSignal): Promise<void> {
    await this.#instances.remove(id, graceMs, signal);
    this.#samples.delete(id);
  }

  async *logs(id: string, since: Date | null, signal: AbortSignal): AsyncGenerator<LogLine> {
    const isOver = async () => ((await this.#instances.find(id))?.state ?? 'exited') === 'exited';
    yield* readInstanceLog(this.#instances.folderOf(id), since, isOver, signal);
  }

  async stats(id: string): Promise<InstanceStats | null> {
    const instance = await this.#instances.find(id);
    if (instance?.state !== 'running' || instance.startedAt === null) return null;
    const processes = await this.#instances.processes(id);
    const [atMs, cpuSeconds] = [Date.now(), processes.reduce((sum, one) => sum + one.cpuSeconds, 0)];
    const last = this.#samples.get(id) ?? { atMs: instance.startedAt.getTime(), cpuSeconds: 0 };
    this.#samples.set(id, { atMs, cpuSeconds });
    // Processes that ended meanwhile take their time with them.
    const cpus = Math.max(0, cpuSeconds - last.cpuSeconds) / Math.max(0.001, (atMs - last.atMs) / 1_000);
    return { cpus, memoryMb: await memoryOf(processes), pids: processes.length };
  }

  async prune(keep: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const used = await Promise.all((await this.list()).map(({ id }) => readJson<InstanceOrder>(this.#instances.folderOf(id), FILES.order)));
    await this.#builder.prune(new Set([...keep, ...used.flatMap((order) => (order === null ? [] : [order.digest]))]), signal);
  }

  /** Instances go on. */
  async close(): Promise<void> {}

  #orderOf(spec: InstanceSpec): InstanceOrder {
    if (spec.artifact.kind !== 'folder') throw new HostingError('hosting_unsupported', 'The process provider runs built folders only.');
    const { folder, digest, server } = spec.artifact;
    if (!existsSync(folder)) throw new HostingError('instance_failed', `The build ${digest} is no longer there. Deploy the version again.`);
    const own = this.#instances.folderOf(spec.id);
    const venv = path.join(folder, 'venv/bin');
    const commands: Record<string, string> = { node: process.execPath, ...(existsSync(venv) && { python: path.join(venv, 'python') }) };
    const inherited = INHERITED.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]] as const]));
    return {
      id: spec.id,
      versionId: spec.versionId,
      environment: spec.environment,
      digest,
      host: this.#host,
      kit: kitServerFile(),
      command: commands[server.command] ?? server.command,
      args: server.args,
      cwd: path.join(folder, server.cwd),
      variables: {
        ...Object.fromEntries(inherited),
        HOST: '{host}',
        PORT: '{port}',
        ...server.variables,
        ...spec.variables,
        PATH: `${venv}:${process.env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin'}`,
        HOME: path.join(own, 'home'),
        TMPDIR: path.join(own, 'tmp'),
        PALESTRA_SECRETS_DIR: path.join(own, FILES.secrets),
        PALESTRA_INSTANCE: spec.id,
        PALESTRA_INSTANCE_FOLDER: own,
      },
    };
  }
}

/** Why the provider cannot run the instance as it should; null if it can. */
function refusal({ artifact, egress, isolation, resources }: InstanceSpec): string | null {
  if (artifact.kind !== 'folder') return 'runs built folders only. Deploy a folder or a repository, or use the docker provider.';
  if (isolation !== 'none') return `cannot isolate instances (${isolation}). Use the docker provider.`;
  if (egress.kind !== 'open')
    return 'cannot limit the addresses to which instances connect. Set egress to "open", or use the docker provider.';
  return resources.gpus > 0 ? 'cannot assign GPUs. Set gpus to 0, or use the docker provider.' : null;
}
