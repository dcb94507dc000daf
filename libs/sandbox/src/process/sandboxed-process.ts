import { type ChildProcessByStdio, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import type { Readable, Writable } from 'node:stream';
import { promisify } from 'node:util';
import type { Command } from './command.ts';
import { processOfContainer, killContainer } from './container.ts';
import { findTool } from './tools.ts';

const MEBIBYTE = 1 << 20;
/** Limit of private writable memory. The program guard ends a process earlier. */
const DATA_BYTES = 1024 * MEBIBYTE;
/**
 * Limits of a started process: no file, socket, thread or process can be opened, no file written. They cannot be raised again. Standard
 * input and output stay open.
 */
const LOCK = [
  '--nofile=0:0',
  '--nproc=0:0',
  '--fsize=0:0',
  '--core=0:0',
  '--memlock=0:0',
  '--msgqueue=0:0',
  `--data=${DATA_BYTES}:${DATA_BYTES}`,
];
const KEPT_STDERR = 4_000;
const HEADER_BYTES = 4;
/** Ticks per second in the kernel's interface. */
const TICK_MS = 10;

/** How a process ended. */
export class ProcessEnded extends Error {
  override readonly name = 'ProcessEnded';

  /** `stderr`: its last output. */
  constructor(
    how: string,
    readonly stderr: string,
  ) {
    super(`the process ${how}`);
  }
}

/** Usage of a process since its start. */
export interface Usage {
  cpuMs: number;
  rssBytes: number;
}

/**
 * A process that is considered hostile. It has no environment variables and only its standard streams. Messages in both directions are a
 * length (four bytes, big-endian) and bytes. An unrequested or too long message ends it.
 */
export class SandboxedProcess {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #ended: Promise<never>;
  readonly #command: Command;
  #pid: number | null = null;
  #stderr = '';
  #received: Buffer[] = [];
  #receivedBytes = 0;
  #waiting: { mostBytes: number; resolve(message: Buffer): void } | null = null;

  constructor(command: Command) {
    const { cwd, uid, gid, env = {} } = command;
    const child = spawn(command.command, command.args, { cwd, uid, gid, env, stdio: ['pipe', 'pipe', 'pipe'] });
    this.#child = child;
    this.#command = command;
    child.stdin.on('error', () => {});
    child.stderr.setEncoding('utf8').on('data', (text: string) => (this.#stderr = (this.#stderr + text).slice(-KEPT_STDERR)));
    child.stdout.on('data', (data: Buffer) => this.#onData(data));
    this.#ended = this.#waitForEnd();
    this.#ended.catch(() => {});
  }

  /** The message that it sends first. Rejects with `ProcessEnded`. */
  async receive(mostBytes: number): Promise<Buffer> {
    const message = new Promise<Buffer>((resolve) => (this.#waiting = { mostBytes, resolve }));
    return Promise.race([message, this.#ended]);
  }

  /** Sends a message and waits for the answer. Rejects with `ProcessEnded`. */
  ask(text: string, mostBytes: number): Promise<Buffer> {
    const bytes = Buffer.from(text);
    const header = Buffer.alloc(HEADER_BYTES);
    header.writeUInt32BE(bytes.length);
    this.#child.stdin.write(Buffer.concat([header, bytes]));
    return this.receive(mostBytes);
  }

  /**
   * Permanently removes what only its start needed. Does nothing on machines without `prlimit` (which are not Linux). A container keeps its
   * descriptors if the service cannot see or limit its process.
   */
  async lock(): Promise<void> {
    const { container } = this.#command;
    if (container !== undefined) this.#pid = await processOfContainer(this.#command);
    const prlimit = findTool('prlimit');
    if (prlimit === null || this.pid === null) return;
    // As the user of the process: in a container root cannot change the limits of others.
    const user = process.getuid?.() === 0 ? userOf(this.pid) : {};
    const limited = promisify(execFile)(prlimit, ['--pid', String(this.pid), ...LOCK], { ...user, env: {} });
    await (container === undefined ? limited : limited.catch(() => {}));
  }

  /** From the kernel; null if it cannot be read or the process has ended. */
  usage(): Usage | null {
    if (this.pid === null) return null;
    try {
      // The name in parentheses can contain any character.
      const fields = readFileSync(`/proc/${this.pid}/stat`, 'latin1')
        .replace(/^.*\) /s, '')
        .split(' ');
      const resident = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${this.pid}/status`, 'latin1'))?.[1] ?? '0';
      return { cpuMs: (Number(fields[11]) + Number(fields[12])) * TICK_MS, rssBytes: Number(resident) * 1024 };
    } catch {
      return null;
    }
  }

  /** The sandboxed process: a wrapper that stays has exactly one child. null: in a container and unknown. */
  get pid(): number | null {
    return this.#command.container === undefined ? (this.#pid ??= innermost(this.#child.pid!)) : this.#pid;
  }

  /** Whether this process keeps the event loop of the service running. */
  keepAlive(isNeeded: boolean): void {
    const change = isNeeded ? 'ref' : 'unref';
    this.#child[change]();
    // Pipes of a child are sockets.
    for (const stream of [this.#child.stdin, this.#child.stdout, this.#child.stderr]) (stream as Socket)[change]();
  }

  onEnd(react: () => void): void {
    this.#ended.catch(react);
  }

  /** Resolves when it has ended. */
  async kill(): Promise<void> {
    if (this.#command.container !== undefined) await killContainer(this.#command);
    this.#child.kill('SIGKILL');
    await this.#ended.catch(() => {});
  }

  async #waitForEnd(): Promise<never> {
    const [code, signal] = (await once(this.#child, 'close').catch((error: Error) => [error.message, null])) as [unknown, string | null];
    throw new ProcessEnded(signal === null ? `ended with ${code}` : `was ended by ${signal}`, this.#stderr);
  }

  #onData(data: Buffer): void {
    if (this.#waiting === null) return void this.kill();
    this.#received.push(data);
    const size = (this.#receivedBytes += data.length);
    if (size < HEADER_BYTES) return;
    // The header can come in pieces.
    if (this.#received[0]!.length < HEADER_BYTES) this.#received = [Buffer.concat(this.#received)];
    const length = this.#received[0]!.readUInt32BE();
    if (length > this.#waiting.mostBytes || size > HEADER_BYTES + length) return void this.kill();
    if (size < HEADER_BYTES + length) return;
    const { resolve } = this.#waiting;
    const message = Buffer.concat(this.#received).subarray(HEADER_BYTES);
    this.#received = [];
    this.#receivedBytes = 0;
    this.#waiting = null;
    resolve(message);
  }
}

/** Its real user and group ids, as this process sees them. */
function userOf(pid: number): { uid: number; gid: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  const id = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1]);
  return { uid: id('Uid'), gid: id('Gid') };
}

function innermost(pid: number): number {
  try {
    const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').split(' ');
    return child ? innermost(Number(child)) : pid;
  } catch {
    return pid;
  }
}
