import { setTimeout as sleep } from 'node:timers/promises';
import { HostingError } from '../../provider/hosting-error.ts';
import { BoundedBuffer } from '../../sandbox/bounded-buffer.ts';
import type { ExecRequest, ExecResult } from '../../sandbox/sandbox.port.ts';
import { killCommand, TIMEOUT_STATUS } from '../../sandbox/sandbox-program.ts';
import { type Engine, EngineError, isStatus } from '../engine/engine.ts';
import { frames } from '../instance/log-lines.ts';

const NOT_FOUND_STATUS = 127;
/** The time of a command begins when it runs: an engine that is busy may take this long to start it. */
const START_MS = 60_000;
/** How long the output of a killed command, or of one that has ended and left a process behind, may still come. */
const DRAIN_MS = 500;
const KILLED_MS = 5_000;
/** An exec is asked for its end this often, because a process that it left behind keeps its output open. */
const FIRST_POLL_MS = 100;
const FIRST_AFTER_OUTPUT_MS = 20;
const LAST_POLL_MS = 2_000;
const POLL_GROWTH = 1.5;

/** How long a command waits for an engine that restarts. One that was only created does not run. */
const AWAY_MS = 15_000;
const AWAY_POLL_MS = 500;

type Request = ExecRequest & { bare?: boolean };
interface ExecInspection {
  Running: boolean;
  ExitCode: number | null;
}

/** Prints its process id as the first line, then becomes the program. The engine cannot end an exec, but the id can. */
const WRAPPER = 'echo "$$"; exec "$@"';

/**
 * Runs a command in a container. Needs /bin/sh there, unless it is `bare`: then the command goes on after its timeout. Rejects with
 * `sandbox_lost` when the container does not run.
 */
export async function exec(engine: Engine, container: string, request: Request, signal: AbortSignal): Promise<ExecResult> {
  const output = new Output(request);
  const done = new AbortController();
  const until = AbortSignal.any([signal, done.signal]);
  const id = await createExec(engine, container, request, signal);
  const socket = await engine.attach({ method: 'POST', path: `/exec/${id}/start`, body: { Detach: false, Tty: false } }, signal);
  const onAbort = () => socket.destroy(signal.reason as Error);
  signal.addEventListener('abort', onAbort, { once: true });
  socket.on('error', () => {});
  const read = output.read(socket);
  read.catch(() => {});
  socket.end(request.stdin ?? Buffer.alloc(0));
  try {
    await Promise.race([output.started, read.catch(() => {}), sleep(START_MS, undefined, { signal: until })]);
    const deadline = performance.now() + request.timeoutMs;
    let exitCode = await ended(engine, id, read, deadline, signal);
    const timedOut = exitCode === null;
    if (exitCode === null) {
      await kill(engine, container, output.processId, signal);
      exitCode = (await ended(engine, id, read, performance.now() + KILLED_MS, signal)) === null ? null : TIMEOUT_STATUS;
    }
    await Promise.race([read, sleep(DRAIN_MS, undefined, { signal })]);
    const { kept } = output;
    return { exitCode: exitCode ?? TIMEOUT_STATUS, output: kept.bytes(), timedOut, truncated: kept.truncated };
  } catch (error) {
    throw lost(engine.failure(error, signal));
  } finally {
    done.abort();
    signal.removeEventListener('abort', onAbort);
    socket.destroy();
  }
}

async function createExec(engine: Engine, container: string, request: Request, signal: AbortSignal): Promise<string> {
  const { command, stdin, user, folder, bare, variables = {} } = request;
  const body = {
    AttachStdin: stdin !== undefined,
    AttachStdout: true,
    AttachStderr: true,
    Tty: false,
    Cmd: bare ? command : ['/bin/sh', '-c', WRAPPER, 'sh', ...command],
    Env: Object.entries(variables).map(([name, value]) => `${name}=${value}`),
    ...(user !== undefined && { User: user }),
    ...(folder !== undefined && { WorkingDir: folder }),
  };
  for (const until = performance.now() + AWAY_MS; ;) {
    try {
      const { Id } = await engine.request<{ Id: string }>({ method: 'POST', path: `/containers/${container}/exec`, body }, signal);
      return Id;
    } catch (error) {
      const isAway = error instanceof HostingError && error.code === 'engine_unavailable';
      if (!isAway || performance.now() >= until) throw lost(error as Error);
    }
    await sleep(AWAY_POLL_MS, undefined, { signal });
  }
}

/** 404: there is no container; 409: it does not run. */
function lost(error: Error): Error {
  if (!isStatus(error, 404, 409)) return error;
  return new HostingError('sandbox_lost', `The sandbox has ended: ${error.message}.`, { cause: error });
}

/** The exit status; null at the deadline. */
async function ended(engine: Engine, id: string, read: Promise<void>, deadline: number, signal: AbortSignal): Promise<number | null> {
  let isRead = false;
  let pause = FIRST_POLL_MS;
  // Most commands end right after their output.
  const onRead = () => {
    isRead = true;
    pause = FIRST_AFTER_OUTPUT_MS;
  };
  read.then(onRead, onRead);
  for (;;) {
    const waits = sleep(Math.min(pause, Math.max(0, deadline - performance.now())), undefined, { signal });
    pause = Math.min(LAST_POLL_MS, pause * POLL_GROWTH);
    await (isRead ? waits : Promise.race([read.catch(() => {}), waits]));
    const found = await inspect(engine, id, signal);
    if (!found.Running) return found.ExitCode ?? NOT_FOUND_STATUS;
    if (performance.now() >= deadline) return null;
  }
}

/** Podman forgets an exec at the moment it ends. */
async function inspect(engine: Engine, id: string, signal: AbortSignal): Promise<ExecInspection> {
  return engine.request<ExecInspection>({ method: 'GET', path: `/exec/${id}/json` }, signal);
}

/** Ends a command and what it began in its process group. */
async function kill(engine: Engine, container: string, processId: number | null, signal: AbortSignal): Promise<void> {
  if (processId === null) return;
  const body = { AttachStdout: true, AttachStderr: true, Cmd: killCommand(processId), User: '0' };
  try {
    const { Id } = await engine.request<{ Id: string }>({ method: 'POST', path: `/containers/${container}/exec`, body }, signal);
    await engine.request({ method: 'POST', path: `/exec/${Id}/start`, body: { Detach: true, Tty: false } }, signal);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
  }
}

const NEWLINE = 10;
/** Longer than any process id. */
const MOST_ID_BYTES = 32;

/** What a command writes, up to its limit. The first line of the standard output is the process id. */
class Output {
  readonly kept: BoundedBuffer;
  processId: number | null = null;
  /** Resolves when the command runs. */
  readonly started: Promise<void>;
  #start: () => void = () => {};
  readonly #request: Request;
  #head: Buffer | null;

  constructor(request: Request) {
    this.#request = request;
    this.kept = new BoundedBuffer(request.maxBytes);
    this.#head = request.bare ? null : Buffer.alloc(0);
    this.started = new Promise((resolve) => (this.#start = resolve));
    if (request.bare) this.#start();
  }

  async read(chunks: AsyncIterable<Buffer>): Promise<void> {
    for await (const { stream, bytes } of frames(chunks)) {
      if (stream === 'stdout') this.kept.add(this.#withoutId(bytes));
      else if (this.#request.stdoutOnly !== true) this.kept.add(bytes);
    }
  }

  #withoutId(bytes: Buffer): Buffer {
    if (this.#head === null) return bytes;
    const all = Buffer.concat([this.#head, bytes]);
    const end = all.indexOf(NEWLINE);
    if (end === -1 && all.length < MOST_ID_BYTES) {
      this.#head = all;
      return Buffer.alloc(0);
    }
    this.#head = null;
    this.#start();
    const id = Number(all.subarray(0, Math.max(0, end)).toString());
    if (!Number.isSafeInteger(id) || id < 1) return all;
    this.processId = id;
    return all.subarray(end + 1);
  }
}
