import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmod, mkdir, open, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { HostingError } from '../provider/hosting-error.ts';
import type { RunningInstance } from '../provider/provider.port.ts';
import {
  FILES,
  FOLDER_VARIABLE,
  INSTANCE_VARIABLE,
  type InstanceExit,
  type InstanceOrder,
  instanceProgram,
  type InstanceRecord,
  readJson,
  writeJson,
} from './instance-files.ts';
import { bootId, kill, type ProcessEntry, processEntry, processesWith, valuesOf } from './process-table.ts';
import { removeFolder } from './remove-folder.ts';

const ID = /^[\w-]{1,64}$/;
/** Prefix of folders that are being removed. */
const REMOVED = '.removed-';
const START_MS = 15_000;
const POLL_MS = 25;
/** A process that the kernel cannot end waits for a device. */
const KILL_MS = 10_000;
/** Megabytes of the heap of `instance-main`, which only forwards output. */
const HEAP_MB = 32;

/** Instances as processes of this machine, one folder each, that outlive this process. */
export class ProcessInstances {
  readonly #folder: string;
  #bootId: string | null = null;
  #knowsStrays = false;

  /** `folder`: absolute; it has the folders of all instances. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  folderOf(id: string): string {
    if (!ID.test(id)) throw new HostingError('instance_failed', `${JSON.stringify(id)} is no id of an instance.`);
    return path.join(this.#folder, id);
  }

  /** Starts the instance unless its folder exists. Resolves when its process runs. */
  async start(order: InstanceOrder, secrets: Readonly<Record<string, string>>, signal: AbortSignal): Promise<RunningInstance> {
    const folder = this.folderOf(order.id);
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    for (;;) {
      const isNew = await mkdir(folder, { mode: 0o700 }).then(
        () => true,
        (error: NodeJS.ErrnoException) => {
          if (error.code === 'EEXIST') return false;
          throw error;
        },
      );
      if (isNew)
        return this.#startIn(folder, order, secrets, signal).catch(async (error: unknown) => {
          await this.remove(order.id, 0, AbortSignal.timeout(KILL_MS));
          throw error;
        });
      const known = await this.find(order.id);
      if (known !== null && known.state !== 'starting') return known;
      // Another process starts it, or was killed while it did.
      signal.throwIfAborted();
      await sleep(POLL_MS);
    }
  }

  async #startIn(
    folder: string,
    order: InstanceOrder,
    secrets: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<RunningInstance> {
    for (const name of [FILES.secrets, 'home', 'tmp']) await mkdir(path.join(folder, name), { mode: 0o700 });
    for (const [name, value] of Object.entries(secrets)) {
      if (!/^[\w.-]{1,128}$/.test(name) || name.startsWith('.'))
        throw new HostingError('instance_failed', `${JSON.stringify(name)} is no name of a secret.`);
      await writeFile(path.join(folder, FILES.secrets, name), value, { mode: 0o400 });
    }
    await chmod(path.join(folder, FILES.secrets), 0o500);
    await writeJson(folder, FILES.order, order);
    signal.throwIfAborted();
    const errors = await open(path.join(folder, 'errors'), 'w', 0o600);
    try {
      const args = [`--max-old-space-size=${HEAP_MB}`, '--max-semi-space-size=1', instanceProgram(), folder];
      const child = spawn(process.execPath, args, {
        cwd: folder,
        detached: true,
        stdio: ['ignore', 'ignore', errors.fd],
        env: { PATH: process.env['PATH'], [INSTANCE_VARIABLE]: order.id, [FOLDER_VARIABLE]: folder },
      });
      child.unref();
      // Without a listener an error would end this process. `#whenStarted` sees that there is no record.
      child.on('error', () => {});
      const ended = new AbortController();
      child.once('exit', () => ended.abort());
      await this.#whenStarted(folder, AbortSignal.any([ended.signal, AbortSignal.timeout(START_MS)]));
    } finally {
      await errors.close();
    }
    return (await this.find(order.id)) ?? this.#notStarted(folder);
  }

  async #whenStarted(folder: string, stop: AbortSignal): Promise<void> {
    while (!stop.aborted && (await readJson(folder, FILES.record)) === null) await sleep(POLL_MS);
    if ((await readJson(folder, FILES.record)) === null) await this.#notStarted(folder);
  }

  async #notStarted(folder: string): Promise<never> {
    const reason = (await readFile(path.join(folder, 'errors'), 'utf8').catch(() => '')).trim().slice(-500);
    throw new HostingError('instance_failed', `The process of the instance did not start. ${reason}`.trim());
  }

  /** Null if there is no such instance. */
  async find(id: string): Promise<RunningInstance | null> {
    const folder = this.folderOf(id);
    const made = await stat(folder).catch(() => null);
    if (made === null) return null;
    const [order, record] = await Promise.all([
      readJson<InstanceOrder>(folder, FILES.order),
      readJson<InstanceRecord>(folder, FILES.record),
    ]);
    const about = { id, versionId: order?.versionId ?? '', restarts: 0 };
    if (order === null || record === null) {
      const isStarting = Date.now() - made.ctimeMs < START_MS;
      const exit = isStarting ? null : { code: null, reason: 'It was never started, because the service ended meanwhile.' };
      return { ...about, state: isStarting ? 'starting' : 'exited', endpoint: null, exit, startedAt: null };
    }
    const startedAt = new Date(record.startedAt);
    // Read in this order: a process that ends meanwhile has written how.
    const isRunning = await this.#isRunning(id, folder, record);
    const exit = isRunning ? null : await this.#exitOf(id, folder);
    if (exit !== null) return { ...about, state: 'exited', endpoint: null, exit, startedAt };
    return { ...about, state: 'running', endpoint: `http://${order.host}:${record.port}`, exit: null, startedAt };
  }

  async #isRunning(id: string, folder: string, record: InstanceRecord): Promise<boolean> {
    this.#bootId ??= await bootId();
    if (record.bootId !== this.#bootId) return false;
    const [found] = await processesWith(this.#marks(id, folder), [record.pid]);
    return found?.startTicks === record.startTicks && (await readJson(folder, FILES.exit)) === null;
  }

  async #exitOf(id: string, folder: string): Promise<InstanceExit> {
    const known = await readJson<InstanceExit>(folder, FILES.exit);
    if (known !== null) return known;
    // `instance-main` was killed. Its server would run on without log and end.
    for (const { pid } of await processesWith(this.#marks(id, folder))) kill(pid, 'SIGKILL');
    const exit = { code: null, reason: 'Its process was killed.' };
    // The folder may be removed meanwhile, or the disk be full. The next call finds the same.
    await writeJson(folder, FILES.exit, exit).catch(() => {});
    return exit;
  }

  /** The variables of every process of an instance. */
  #marks(id: string, folder: string): Record<string, string> {
    return { [INSTANCE_VARIABLE]: id, [FOLDER_VARIABLE]: folder };
  }

  async list(): Promise<RunningInstance[]> {
    const names = await readdir(this.#folder).catch(() => []);
    const ids = names.filter((name) => ID.test(name));
    const found = await Promise.all(ids.map((id) => this.find(id)));
    const instances = found.filter((one) => one !== null);
    if (this.#knowsStrays) return instances;
    this.#knowsStrays = true;
    // What a killed service did not remove to the end.
    for (const name of names) if (name.startsWith(REMOVED)) await removeFolder(path.join(this.#folder, name));
    return [...instances, ...(await this.#strays(new Set(ids)))];
  }

  /** Processes of instances whose folder is gone. `remove` ends them. */
  async #strays(known: ReadonlySet<string>): Promise<RunningInstance[]> {
    const folders = [...(await valuesOf(FOLDER_VARIABLE))].filter((folder) => path.dirname(folder) === this.#folder);
    return folders
      .map((folder) => path.basename(folder))
      .filter((id) => !known.has(id))
      .map((id) => ({ id, versionId: '', state: 'running', endpoint: null, exit: null, startedAt: null, restarts: 0 }));
  }

  /** All processes of an instance: those of its session, and those that left it. */
  async processes(id: string): Promise<ProcessEntry[]> {
    const folder = this.folderOf(id);
    const marked = await processesWith(this.#marks(id, folder));
    const record = await readJson<InstanceRecord>(folder, FILES.record);
    const leader =
      record === null ? undefined : marked.find(({ pid, startTicks }) => pid === record.pid && startTicks === record.startTicks);
    if (leader === undefined) return marked;
    // While the leader lives, its session has this number. A program that cleared its environment is found by it.
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
    const all = (await Promise.all(pids.map((pid) => processEntry(pid)))).filter((one) => one !== null);
    const known = new Set(marked.map(({ pid }) => pid));
    return [...marked, ...all.filter(({ pid, session }) => session === leader.pid && !known.has(pid))];
  }

  async remove(id: string, graceMs: number, signal: AbortSignal): Promise<void> {
    const folder = this.folderOf(id);
    const started = Date.now();
    let seen = new Map<number, ProcessEntry>();
    for (const { pid } of await this.processes(id)) kill(pid, 'SIGTERM');
    for (;;) {
      signal.throwIfAborted();
      const left = await this.#left(id, seen);
      if (left.length === 0) break;
      seen = new Map(left.map((one) => [one.pid, one]));
      const ranMs = Date.now() - started;
      if (ranMs > graceMs + KILL_MS)
        throw new HostingError('instance_failed', `The process ${left[0]!.pid} of the instance ${id} does not end. End it by hand.`);
      if (ranMs >= graceMs) for (const { pid } of left) kill(pid, 'SIGKILL');
      await sleep(POLL_MS);
    }
    // At once, because readers of the instance write into its folder when they see that it ended.
    const gone = path.join(this.#folder, `${REMOVED}${id}-${randomUUID()}`);
    await rename(folder, gone).catch(ignoreMissing);
    await removeFolder(gone);
  }

  /** Its processes, and those that were its processes before: without their leader some could not be recognised. */
  async #left(id: string, seen: ReadonlyMap<number, ProcessEntry>): Promise<ProcessEntry[]> {
    const now = await this.processes(id);
    const known = new Set(now.map(({ pid }) => pid));
    const before = await Promise.all(
      [...seen.values()].filter(({ pid }) => !known.has(pid)).map(async (one) => ({ one, entry: await processEntry(one.pid) })),
    );
    return [...now, ...before.flatMap(({ one, entry }) => (entry?.startTicks === one.startTicks ? [entry] : []))];
  }
}

/** For a folder that is removed meanwhile. */
function ignoreMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error;
}
