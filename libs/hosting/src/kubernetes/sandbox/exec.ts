import { setTimeout as sleep } from 'node:timers/promises';
import { HostingError } from '../../provider/hosting-error.ts';
import { BoundedBuffer } from '../../sandbox/bounded-buffer.ts';
import type { ExecRequest, ExecResult } from '../../sandbox/sandbox.port.ts';
import { killCommand, TIMEOUT_STATUS } from '../../sandbox/sandbox-program.ts';
import { commandLine, inputLines, SHELL } from './command-line.ts';
import { type ContainerTarget, runInContainer } from './container-run.ts';
import { lostSandbox } from './sandbox-state.ts';

type Request = Omit<ExecRequest, 'stdin'> & {
  /** A stream is read once, as it is sent. */
  stdin?: Buffer | AsyncIterable<Buffer>;
  /** It is the program of the container itself, and gets a Buffer as input, but no end of file. It goes on after its timeout. */
  bare?: boolean;
  /** Takes the standard output in the place of the result. */
  onOutput?: (bytes: Buffer) => Promise<void> | void;
};

/** A node that is busy may take long to start a program. */
const START_MS = 60_000;
/** How long the output of a command that has ended and left a process behind may still come. */
const DRAIN_MS = 500;
const KILL_MS = 10_000;
const KILLED_MS = 5_000;
const SMALL_BYTES = 1_024;

/** Runs a command in a container. Needs /bin/sh there, unless it is `bare`. Rejects with `sandbox_lost` when the container does not run. */
export async function exec(target: ContainerTarget, request: Request, signal: AbortSignal): Promise<ExecResult> {
  if (request.user !== undefined) {
    throw new HostingError('hosting_unsupported', 'Commands in a pod run as the user of its image, and of no other.');
  }
  const kept = new BoundedBuffer(request.maxBytes);
  const said = new Reports();
  const done = new AbortController();
  const until = AbortSignal.any([signal, done.signal]);
  const running = start(target, request, kept, said, until).catch((error: unknown) => {
    // The connection broke after the shell had said how the command ended.
    if (said.exitCode !== null && !signal.aborted) return said.exitCode;
    throw error;
  });
  const ended = Promise.race([running, said.exited.then(() => within(running, DRAIN_MS, until)).then((code) => code ?? said.exitCode)]);
  ended.catch(() => {});
  try {
    if (!request.bare && (await within(Promise.race([said.started, ended]), START_MS, until)) === null)
      throw new HostingError('engine_unavailable', 'The node did not start the command in time.');
    const exitCode = await within(ended, request.timeoutMs, until);
    const timedOut = exitCode === null;
    if (timedOut && said.processId !== null) {
      await kill(target, said.processId, signal);
      await within(ended, KILLED_MS, until);
    }
    return { exitCode: exitCode ?? TIMEOUT_STATUS, output: kept.bytes(), timedOut, truncated: kept.truncated };
  } catch (error) {
    signal.throwIfAborted();
    throw (await lostSandbox(target, error, signal)) ?? error;
  } finally {
    done.abort();
  }
}

function start(target: ContainerTarget, request: Request, kept: BoundedBuffer, said: Reports, signal: AbortSignal): Promise<number> {
  const { stdin, bare = false, onOutput = (bytes: Buffer) => kept.add(bytes) } = request;
  async function* input(): AsyncGenerator<Buffer> {
    if (bare) yield stdin as Buffer;
    else {
      yield commandLine(request as ExecRequest, stdin !== undefined);
      if (stdin !== undefined) yield* inputLines(stdin);
    }
  }
  const streams = {
    input: bare && stdin === undefined ? null : input(),
    onOutput,
    onError: (bytes: Buffer) => (bare ? kept : said).add(bytes),
  };
  return runInContainer(target, bare ? request.command : SHELL, streams, signal);
}

/** Null if it takes longer. */
async function within<T>(work: Promise<T>, ms: number, signal: AbortSignal): Promise<T | null> {
  const isOver = new AbortController();
  try {
    return await Promise.race([work, sleep(ms, null, { signal: AbortSignal.any([signal, isOver.signal]) })]);
  } finally {
    isOver.abort();
  }
}

/** Ends a command and what it began in its process group. */
async function kill(target: ContainerTarget, processId: number, signal: AbortSignal): Promise<void> {
  const streams = { input: null, onOutput: () => {}, onError: () => {} };
  const soon = AbortSignal.any([signal, AbortSignal.timeout(KILL_MS)]);
  await runInContainer(target, killCommand(processId), streams, soon).catch(() => {});
  signal.throwIfAborted();
}

/** What the shell around a command says on its standard error. */
class Reports {
  processId: number | null = null;
  exitCode: number | null = null;
  readonly started: Promise<void>;
  readonly exited: Promise<void>;
  #start: () => void = () => {};
  #exit: () => void = () => {};
  #text = '';

  constructor() {
    this.started = new Promise((resolve) => (this.#start = resolve));
    this.exited = new Promise((resolve) => (this.#exit = resolve));
  }

  add(bytes: Buffer): void {
    const lines = (this.#text + bytes.toString('latin1')).split('\n');
    this.#text = lines.pop()!.slice(-SMALL_BYTES);
    // The shell may say more, such as the signal that ended a command.
    for (const line of lines) {
      const [, word, number] = /^(pid|exit) (\d{1,10})$/.exec(line) ?? [];
      if (word === 'pid' && this.processId === null) {
        this.processId = Number(number);
        this.#start();
      } else if (word === 'exit' && this.exitCode === null) {
        this.exitCode = Number(number);
        this.#exit();
      }
    }
  }
}
