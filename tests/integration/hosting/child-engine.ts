import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import {
  type Capabilities,
  freePort,
  HostingError,
  type InstanceSpec,
  type InstanceStats,
  type LogLine,
  type Provider,
  type RunningInstance,
} from '@palestra/hosting';

const CAPABILITIES: Capabilities = { isolation: ['none'], egress: ['open'], gpus: false, limits: false, maxMemoryMb: null, builds: false };

interface Child {
  process: ChildProcess;
  shown: RunningInstance;
  lines: LogLine[];
  ended: Promise<unknown>;
}

/** An engine for tests: child processes of the test, which outlive the reconciler that started them. It can be away. */
export class ChildEngine implements Provider {
  readonly name = 'process' as const;
  readonly children = new Map<string, Child>();
  /** While set it does not answer. */
  isAway = false;
  /** So many instances are first created in part, and the start breaks off. */
  halves = 0;
  /** Ids of instances that it cannot end. */
  readonly stuck = new Set<string>();
  readonly #half = new Map<string, string>();
  /** What it was asked to keep, each time. */
  readonly pruned: ReadonlySet<string>[] = [];
  /** Ids for which it was asked to start an instance, in order. */
  readonly started: string[] = [];

  async capabilities(): Promise<Capabilities> {
    this.#assertHere();
    return CAPABILITIES;
  }

  async ensure({ id, versionId, artifact, variables }: InstanceSpec): Promise<RunningInstance> {
    this.#assertHere();
    const known = this.children.get(id);
    if (known !== undefined) return known.shown;
    if (this.halves > 0) {
      this.halves -= 1;
      this.#half.set(id, versionId);
      throw new HostingError('engine_unavailable', 'The engine of the test went away.');
    }
    this.#half.delete(id);
    if (artifact.kind !== 'folder') throw new HostingError('hosting_unsupported', 'This engine runs folders only.');
    this.started.push(id);
    const port = await freePort();
    const { command, args, variables: own } = artifact.server;
    const child = spawn(command, args, { cwd: artifact.folder, env: { ...process.env, ...own, ...variables, PORT: String(port) } });
    const shown: RunningInstance = {
      id,
      versionId,
      state: 'running',
      endpoint: `http://127.0.0.1:${port}`,
      exit: null,
      startedAt: new Date(),
      restarts: 0,
    };
    const lines: LogLine[] = [];
    for (const stream of ['stdout', 'stderr'] as const)
      createInterface({ input: child[stream] }).on('line', (text) => lines.push({ at: new Date(), stream, text }));
    const ended = once(child, 'close').then(([code, signal]) => {
      shown.state = 'exited';
      shown.exit = {
        code: signal === 'SIGKILL' ? 137 : (code as number | null),
        reason: signal === null ? `exited with code ${code}` : `ended by ${signal}`,
      };
    });
    this.children.set(id, { process: child, shown, lines, ended });
    return shown;
  }

  async list(): Promise<RunningInstance[]> {
    this.#assertHere();
    const about = { state: 'starting', endpoint: null, exit: null, startedAt: null, restarts: 0 } as const;
    return [
      ...[...this.children.values()].map(({ shown }) => ({ ...shown })),
      ...[...this.#half].map(([id, versionId]) => ({ id, versionId, ...about })),
    ];
  }

  async remove(id: string, graceMs: number): Promise<void> {
    this.#assertHere();
    if (this.stuck.has(id)) throw new HostingError('instance_failed', 'The engine of the test cannot end it.');
    this.#half.delete(id);
    const child = this.children.get(id);
    if (child === undefined) return;
    child.process.kill('SIGTERM');
    const timer = setTimeout(() => child.process.kill('SIGKILL'), graceMs);
    await child.ended;
    clearTimeout(timer);
    this.children.delete(id);
  }

  async *logs(id: string, since: Date | null, signal: AbortSignal): AsyncGenerator<LogLine> {
    for (let at = 0; !signal.aborted;) {
      const child = this.children.get(id);
      const isOver = child === undefined || child.shown.state === 'exited';
      for (; at < (child?.lines.length ?? 0); at += 1) if (since === null || child!.lines[at]!.at > since) yield child!.lines[at]!;
      if (isOver) return;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async stats(id: string): Promise<InstanceStats | null> {
    return this.children.get(id)?.shown.state === 'running' ? { cpus: 0.1, memoryMb: 50, pids: 1 } : null;
  }

  async build(): Promise<never> {
    throw new HostingError('build_failed', 'This engine builds nothing.');
  }
  async prune(keep: ReadonlySet<string>): Promise<void> {
    this.pruned.push(keep);
  }
  async close(): Promise<void> {}

  /** As `kill -9`. */
  async kill(id: string): Promise<void> {
    const child = this.children.get(id)!;
    child.process.kill('SIGKILL');
    await child.ended;
  }

  /** Ends everything, at the end of the tests. */
  async end(): Promise<void> {
    this.isAway = false;
    await Promise.all([...this.children.keys()].map((id) => this.kill(id)));
  }

  #assertHere(): void {
    if (this.isAway) throw new HostingError('engine_unavailable', 'The engine of the test is away.');
  }
}
