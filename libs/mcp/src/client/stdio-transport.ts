import { type ChildProcess, spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { ReadBuffer, serializeMessage } from '@modelcontextprotocol/sdk/shared/stdio.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { ANSWER_LIMITS } from '@palestra/outbound';

/** Variables that programs need. A child gets no others. */
const INHERITED = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'TERM', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR'];
const KEPT_STDERR = 4_096;
/** Time to end after its input was closed, and again after SIGTERM. */
const GRACE_MS = 2_000;

/** Process groups to end with this process. */
const groups = new Set<number>();
process.on('exit', () => {
  for (const group of groups) killGroup(group, 'SIGKILL');
});

/**
 * An MCP server on the standard input and output of a child process. The SDK's own transport ends only the child, but `npx` and `uvx` start
 * grandchildren. Each child therefore leads a process group, which is ended as a whole.
 */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #command: string;
  readonly #args: string[];
  readonly #buffer = new ReadBuffer({ maxBufferSize: ANSWER_LIMITS.call });
  #child: ChildProcess | null = null;
  #exited: Promise<void> = Promise.resolve();
  #stderr = '';

  constructor(command: string, args: string[]) {
    this.#command = command;
    this.#args = args;
  }

  /** null: not started. */
  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  /** The end of its standard error. */
  get stderr(): string {
    return this.#stderr.trim();
  }

  start(): Promise<void> {
    const env = Object.fromEntries(INHERITED.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])));
    const child = spawn(this.#command, this.#args, { cwd: tmpdir(), env, stdio: 'pipe', detached: true });
    this.#child = child;
    this.#exited = new Promise((resolve) => {
      child.once('exit', () => {
        // Its children would keep the pipes open.
        if (child.pid !== undefined) killGroup(child.pid, 'SIGKILL');
        groups.delete(child.pid!);
        resolve();
      });
      child.once('error', () => resolve());
    });
    child.stdin.on('error', (error) => this.onerror?.(error));
    child.stdout.on('data', (piece: Buffer) => this.#read(piece));
    child.stderr.on('data', (piece: Buffer) => (this.#stderr = (this.#stderr + piece.toString('utf8')).slice(-KEPT_STDERR)));
    child.once('close', () => this.onclose?.());
    return new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('spawn', () => {
        groups.add(child.pid!);
        resolve();
      });
    });
  }

  send(message: JSONRPCMessage): Promise<void> {
    return new Promise((resolve, reject) => {
      if (!this.#child?.stdin?.writable) return reject(new Error('The process of the MCP server has ended.'));
      this.#child.stdin.write(serializeMessage(message), (error) => (error ? reject(error) : resolve()));
    });
  }

  /** Closes its input, sends SIGTERM, then kills the group. */
  async close(): Promise<void> {
    const child = this.#child;
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.stdin?.end();
    if (await this.#endsWithin(GRACE_MS)) return;
    killGroup(child.pid, 'SIGTERM');
    if (await this.#endsWithin(GRACE_MS)) return;
    killGroup(child.pid, 'SIGKILL');
    await this.#exited;
  }

  async #endsWithin(limitMs: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise<false>((resolve) => (timer = setTimeout(() => resolve(false), limitMs)));
    return Promise.race([this.#exited.then(() => true), patience]).finally(() => clearTimeout(timer));
  }

  #read(piece: Buffer): void {
    try {
      this.#buffer.append(piece);
    } catch (error) {
      // The start of this message was dropped, so the rest is invalid.
      this.onerror?.(error as Error);
      return void this.close();
    }
    for (;;) {
      try {
        const message = this.#buffer.readMessage();
        if (message === null) return;
        this.onmessage?.(message);
      } catch (error) {
        // Ignores output that is not a message.
        this.onerror?.(error as Error);
      }
    }
  }
}

function killGroup(group: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-group, signal);
  } catch {
    // It has already ended.
  }
}
