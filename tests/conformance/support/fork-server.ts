import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { constants, tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { PassThrough } from 'node:stream';

/** What a program imports at its start. Importing `openreward` or `openenv` takes seconds, a fork of a process that has done it takes none. */
const PACKAGES: Record<string, string[]> = {
  PALESTRA_PYTHON_V167: ['openreward', 'openreward.environments', 'openreward.cli', 'pytest', 'pytest_asyncio', 'uvicorn'],
  PALESTRA_PYTHON_V112: ['openreward', 'openreward.environments', 'openreward.cli', 'pytest', 'pytest_asyncio', 'uvicorn'],
  PALESTRA_PYTHON_ORS: ['ors', 'ors.client', 'uvicorn'],
  PALESTRA_PYTHON_OE_0_10_0: ['openenv.core.env_server', 'openenv.cli.__main__', 'fastmcp', 'uvicorn'],
  PALESTRA_PYTHON_OE_0_5_0: ['openenv.core.env_server', 'fastmcp', 'uvicorn'],
  PALESTRA_PYTHON_OE_0_4_1: ['openenv.core.env_server', 'fastmcp', 'uvicorn'],
  PALESTRA_PYTHON_OE_0_3_0: ['openenv.core.env_server', 'fastmcp', 'uvicorn'],
  PALESTRA_PYTHON_OE_0_2_3: ['openenv.core.env_server', 'fastmcp', 'uvicorn'],
  PALESTRA_PYTHON_OE_0_1_1: ['openenv_core', 'uvicorn'],
  PALESTRA_PYTHON_MCP1: ['mcp', 'mcp.server', 'uvicorn'],
  PALESTRA_PYTHON_MCP2: ['mcp', 'mcp.server', 'uvicorn'],
};
/** Programs that read by pyarrow, whose threads keep a fork from ending. */
const UNFORKED = ['read_rollouts.py', 'read_tasks.py', 'read_lake.py'];

/** The part of `ChildProcess` that tests use. */
export interface PythonProcess extends EventEmitter<{ spawn: []; exit: [number | null]; close: [number | null] }> {
  stdout: PassThrough;
  stderr: PassThrough;
  exitCode: number | null;
  signalCode: NodeJS.Signals | null;
  kill(signal?: NodeJS.Signals): void;
}

interface Job {
  process: PythonProcess;
  pid: number | null;
  /** A signal that was sent before the fork had a process id. */
  signal: NodeJS.Signals | null;
  /** Of `exit` and the two streams, those that have not ended yet: `close` follows the last one. */
  open: Set<string>;
}

const signalOf = (number: number) => Object.entries(constants.signals).find(([, value]) => value === number)![0] as NodeJS.Signals;

/** Does nothing when the fork has ended, as `ChildProcess.kill`: its end may not be reported yet. */
function signalFork(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

const folder = mkdtempSync(path.join(tmpdir(), 'palestra-fork-'));
const importing = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of importing) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

class ForkServer {
  readonly #jobs = new Map<number, Job>();
  readonly #ready: Promise<ChildProcess>;
  #count = 0;

  constructor(interpreter: string, packages: string[]) {
    this.#ready = this.#start(interpreter, packages);
    // Reported by each `run`.
    this.#ready.catch(() => {});
  }

  async #start(interpreter: string, packages: string[]): Promise<ChildProcess> {
    const socketPath = path.join(folder, `${path.basename(path.resolve(interpreter, '../..'))}-${randomUUID().slice(0, 8)}`);
    const sockets = createServer((socket) => this.#accept(socket)).listen(socketPath);
    await once(sockets, 'listening');
    const script = path.resolve(import.meta.dirname, '../python/fork_server.py');
    const child = spawn(interpreter, [script, socketPath, ...packages], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' },
    });
    // Ends with this worker at the end of its stdin, which it does not read yet while it imports; and does not keep the worker.
    importing.add(child);
    sockets.unref();
    child.unref();
    (child.stdin as unknown as Socket).unref();
    (child.stdout as unknown as Socket).unref();
    const lines = createInterface({ input: child.stdout });
    const ended = once(child, 'exit').then(([code]) => {
      throw new Error(`the fork server of ${interpreter} ended with ${code}`);
    });
    await Promise.race([once(lines, 'line'), ended]).finally(() => importing.delete(child));
    ended.catch(() => this.#jobs.forEach((job, id) => this.#end(id, job, -9)));
    lines.on('line', (line) => {
      const { id, pid, code } = JSON.parse(line) as { id: number; pid?: number; code?: number };
      const job = this.#jobs.get(id)!;
      if (code !== undefined) this.#end(id, job, code);
      else {
        job.pid = pid!;
        job.process.emit('spawn');
        if (job.signal !== null) signalFork(pid!, job.signal);
      }
    });
    return child;
  }

  /** The first line of a connection says whose output it is. */
  #accept(socket: Socket): void {
    let head = Buffer.alloc(0);
    socket.on('error', () => {});
    socket.on('data', function read(this: Socket, data: Buffer) {
      head = Buffer.concat([head, data]);
      const end = head.indexOf('\n');
      if (end < 0) return;
      socket.off('data', read);
      attach(head.subarray(0, end).toString(), head.subarray(end + 1));
    });
    const attach = (line: string, rest: Buffer) => {
      const [id, name] = line.split(' ') as [string, 'stdout' | 'stderr'];
      const job = this.#jobs.get(Number(id))!;
      const stream = job.process[name];
      if (rest.length > 0) stream.write(rest);
      socket.on('data', (data: Buffer) => stream.write(data));
      socket.once('close', () => {
        stream.end();
        this.#closed(Number(id), job, name);
      });
    };
  }

  #end(id: number, job: Job, code: number): void {
    if (!job.open.has('exit')) return;
    if (code < 0) job.process.signalCode = signalOf(-code);
    else job.process.exitCode = code;
    job.process.emit('exit', job.process.exitCode);
    this.#closed(id, job, 'exit');
  }

  #closed(id: number, job: Job, name: string): void {
    job.open.delete(name);
    if (job.open.size > 0) return;
    this.#jobs.delete(id);
    setImmediate(() => job.process.emit('close', job.process.exitCode));
  }

  run(args: string[], cwd: string, env: Record<string, string>): PythonProcess {
    const id = (this.#count += 1);
    const created = new EventEmitter() as PythonProcess;
    const job: Job = { process: created, pid: null, signal: null, open: new Set(['exit', 'stdout', 'stderr']) };
    Object.assign(created, {
      stdout: new PassThrough(),
      stderr: new PassThrough(),
      exitCode: null,
      signalCode: null,
      kill: (signal: NodeJS.Signals = 'SIGTERM') => {
        if (created.exitCode !== null || created.signalCode !== null) return;
        if (job.pid === null) job.signal = signal;
        else signalFork(job.pid, signal);
      },
    });
    this.#jobs.set(id, job);
    this.#ready.then(
      (child) => child.stdin!.write(`${JSON.stringify({ id, arguments: args, cwd, env })}\n`),
      (error: Error) => {
        job.process.stderr.end(error.message);
        this.#end(id, job, 1);
        this.#closed(id, job, 'stdout');
        this.#closed(id, job, 'stderr');
      },
    );
    return created;
  }
}

/** Files of one worker share its modules (`isolate: false`), so these are the servers of one worker. */
const servers = new Map<string, ForkServer>();

/** The variable that names the interpreter beside which a program is installed. */
const variableOf = (command: string): string | undefined =>
  Object.keys(PACKAGES).find((name) => process.env[name] !== undefined && path.dirname(process.env[name]) === path.dirname(command));

interface PythonOptions {
  cwd: string;
  env: Record<string, string>;
}

/** Starts an interpreter, or a program that is installed beside it, with the official packages imported already. */
export function spawnPython(command: string, args: string[], options: PythonOptions): PythonProcess | ChildProcess {
  const env = Object.fromEntries(
    Object.entries({ ...process.env, PYTHONDONTWRITEBYTECODE: '1', NO_PROXY: '*', ...options.env }).filter(
      ([, value]) => value !== undefined,
    ),
  ) as Record<string, string>;
  const variable = variableOf(command);
  if (variable === undefined || UNFORKED.includes(path.basename(args[0] ?? ''))) {
    return spawn(command, args, { cwd: options.cwd, stdio: ['ignore', 'pipe', 'pipe'], env });
  }
  const interpreter = process.env[variable]!;
  const server = servers.get(variable) ?? new ForkServer(interpreter, PACKAGES[variable]!);
  servers.set(variable, server);
  return server.run(command === interpreter ? args : [command, ...args], options.cwd, env);
}
