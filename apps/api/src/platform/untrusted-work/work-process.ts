import { type ChildProcess, fork } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { constants, setPriority } from 'node:os';
import { fileURLToPath } from 'node:url';
import { type ErrorCode, PalestraError } from '@palestra/protocol';

export interface WorkProcessLimits {
  /** Milliseconds. */
  deadlineMs: number;
  /** Bytes. */
  memoryBytes: number;
}

/** What the process is sent, once. */
export interface WorkRequest {
  module: string;
  input: unknown;
}
export type WorkResponse = { value: unknown } | { error: { code: ErrorCode; detail: string } } | { failure: string };

const MEMORY_EVERY_MS = 20;
const MAIN = new URL('./work-main.js', import.meta.url);

/** One Node.js process without an environment that does one piece of work and is killed when that takes too long or too much memory. */
export class WorkProcess {
  #child: ChildProcess | null = null;

  constructor(private readonly limits: WorkProcessLimits) {}

  /** The answer of the module's default export. Throws its PalestraError, `too_expensive`, or an Error when the module fails otherwise. */
  async run(module: URL, input: unknown): Promise<unknown> {
    const { deadlineMs, memoryBytes } = this.limits;
    const child = start(memoryBytes);
    this.#child = child;
    let excess: string | null = null;
    const kill = (reason: string) => {
      excess ??= reason;
      child.kill('SIGKILL');
    };
    const deadline = setTimeout(() => kill(`more than ${deadlineMs / 1000} s`), deadlineMs);
    const memory = setInterval(() => {
      void residentBytes(child.pid).then((bytes) => bytes > memoryBytes && kill(`more than ${memoryBytes / 1024 / 1024} MiB of memory`));
    }, MEMORY_EVERY_MS);
    try {
      const answer = await answerOf(child, { module: compiled(module).href, input });
      if (answer === null) {
        // V8 aborts when its heap is full.
        excess ??= child.signalCode === 'SIGABRT' || child.exitCode === 134 ? `more than ${memoryBytes / 1024 / 1024} MiB of memory` : null;
        if (excess === null) throw new Error(`a process for foreign work ended with ${child.signalCode ?? child.exitCode}`);
        throw new PalestraError('too_expensive', { detail: `This takes ${excess}, so it was given up. Make it smaller or simpler.` });
      }
      if ('error' in answer) throw new PalestraError(answer.error.code, { detail: answer.error.detail });
      if ('failure' in answer) throw new Error(answer.failure);
      return answer.value;
    } finally {
      clearTimeout(deadline);
      clearInterval(memory);
      child.kill('SIGKILL');
    }
  }

  stop(): void {
    this.#child?.kill('SIGKILL');
  }
}

/** Tests run the source of the service; the process has plain Node.js, which needs what the build has made of it. */
const compiled = (file: URL): URL => (file.href.endsWith('.js') ? new URL(file.href.replace('/apps/api/src/', '/apps/api/dist/')) : file);

function start(memoryBytes: number): ChildProcess {
  const heapMb = Math.floor(memoryBytes / 2 / 1024 / 1024);
  const child = fork(fileURLToPath(compiled(MAIN)), [], {
    execArgv: [`--max-old-space-size=${heapMb}`, '--max-semi-space-size=8', '--no-warnings'],
    env: {},
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  try {
    // The service and PostgreSQL come first.
    if (child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // It has ended, or the system knows no priorities.
  }
  return child;
}

/** The one message of the process; null when it ended without one. */
function answerOf(child: ChildProcess, request: WorkRequest): Promise<WorkResponse | null> {
  return new Promise((resolve, reject) => {
    child.once('message', (answer) => resolve(answer as WorkResponse));
    // Not once: an error after the answer, as of a message to a process that was just killed, must not end the service.
    child.on('error', reject);
    child.once('exit', () => resolve(null));
    // A process that ends before it read the request is reported by its exit.
    child.send(request, () => {});
  });
}

/** 0 where the system does not say. */
async function residentBytes(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024;
}
