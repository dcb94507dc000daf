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

/** The one message to the process. */
export interface WorkRequest {
  module: string;
  input: unknown;
}
export type WorkResponse = { value: unknown } | { error: { code: ErrorCode; detail: string } } | { failure: string };

const MEMORY_EVERY_MS = 20;
const MAIN = new URL('./work-main.js', import.meta.url);

/** A Node.js process without environment variables for one task. It is killed when the task takes too much time or memory. */
export class WorkProcess {
  #child: ChildProcess | null = null;

  constructor(private readonly limits: WorkProcessLimits) {}

  /** Returns the result of the module's default export. Throws its PalestraError, `too_expensive`, or an Error for other failures. */
  async run(module: URL, input: unknown): Promise<unknown> {
    const { deadlineMs, memoryBytes } = this.limits;
    const child = startChild(memoryBytes);
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
      const response = await requestWork(child, { module: compiled(module).href, input });
      if (response === null) {
        // V8 aborts when its heap is full.
        excess ??= child.signalCode === 'SIGABRT' || child.exitCode === 134 ? `more than ${memoryBytes / 1024 / 1024} MiB of memory` : null;
        if (excess === null) throw new Error(`the process for untrusted work ended with ${child.signalCode ?? child.exitCode}`);
        throw new PalestraError('too_expensive', { detail: `This takes ${excess}, so it was stopped. Make it smaller or simpler.` });
      }
      if ('error' in response) throw new PalestraError(response.error.code, { detail: response.error.detail });
      if ('failure' in response) throw new Error(response.failure);
      return response.value;
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

/** Tests run the TypeScript source, but the process is plain Node.js and needs the compiled file. */
const compiled = (file: URL): URL => (file.href.endsWith('.js') ? new URL(file.href.replace('/apps/api/src/', '/apps/api/dist/')) : file);

function startChild(memoryBytes: number): ChildProcess {
  const heapMb = Math.floor(memoryBytes / 2 / 1024 / 1024);
  const child = fork(fileURLToPath(compiled(MAIN)), [], {
    execArgv: [`--max-old-space-size=${heapMb}`, '--max-semi-space-size=8', '--no-warnings'],
    env: {},
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  try {
    // The service and PostgreSQL have priority.
    if (child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // The process has ended, or the system has no priorities.
  }
  return child;
}

/** Sends the request and returns the response; null when the process ended without one. */
function requestWork(child: ChildProcess, request: WorkRequest): Promise<WorkResponse | null> {
  return new Promise((resolve, reject) => {
    child.once('message', (response) => resolve(response as WorkResponse));
    // Not `once`: an error after the response, such as a message to a killed process, must not end the service.
    child.on('error', reject);
    child.once('exit', () => resolve(null));
    // If the process ends before it reads the request, `exit` reports it.
    child.send(request, () => {});
  });
}

/** 0 on systems without `/proc`. */
async function residentBytes(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024;
}
