import { setTimeout as sleep } from 'node:timers/promises';
import { abortable } from '@palestra/kit';
import WebSocket from 'ws';
import { HostingError } from '../../provider/hosting-error.ts';
import { type Cluster, failure, refusal } from '../cluster/cluster.ts';

/** Subprotocol of streams: the first byte of each message names one. It cannot say that the standard input ends. */
const PROTOCOL = 'v4.channel.k8s.io';
const STDIN = 0;
const STDOUT = 1;
const STDERR = 2;
const STATUS = 3;
const CONNECT_MS = 15_000;
/** What stands between this service and the node may close a connection on which nothing happens. */
const PING_MS = 20_000;
/** Servers send 32 KiB at once. */
const MOST_MESSAGE_BYTES = 2 ** 22;
const PIECE_BYTES = 2 ** 16;

/** How long a command waits for an API server that restarts. Without a connection nothing has begun. */
const AWAY_MS = 15_000;
const AWAY_POLL_MS = 500;
const NOT_CONNECTED = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN']);

export interface ContainerTarget {
  cluster: Cluster;
  pod: string;
  container: string;
}

export interface ContainerStreams {
  /** It gets no end of file. */
  input: AsyncIterable<Buffer> | null;
  /** Nothing more is read until a promise that is returned settles. */
  onOutput: (bytes: Buffer) => Promise<void> | void;
  onError: (bytes: Buffer) => void;
}

/**
 * Runs a program in a container (`pods/exec`). Resolves with its exit status, when all of its output was read. Rejects with a `ClusterRefusal`,
 * with `engine_unavailable` if the connection breaks, with `instance_failed` for a program that could not be started, and with the error of the
 * input. When the signal aborts, the program may go on.
 */
export async function runInContainer(
  target: ContainerTarget,
  command: readonly string[],
  streams: ContainerStreams,
  signal: AbortSignal,
): Promise<number> {
  for (const until = performance.now() + AWAY_MS; ;) {
    try {
      return await run(target, command, streams, signal);
    } catch (error) {
      const { code } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException;
      if (!NOT_CONNECTED.has(code ?? '') || performance.now() >= until) throw error;
    }
    await sleep(AWAY_POLL_MS, undefined, { signal });
  }
}

async function run(
  { cluster, pod, container }: ContainerTarget,
  command: readonly string[],
  { input, onOutput, onError }: ContainerStreams,
  signal: AbortSignal,
): Promise<number> {
  signal.throwIfAborted();
  const query = new URLSearchParams({ container, stdin: String(input !== null), stdout: 'true', stderr: 'true', tty: 'false' });
  for (const part of command) query.append('command', part);
  const path = `/api/v1/namespaces/${cluster.namespace}/pods/${pod}/exec?${query.toString()}`;
  const soon = AbortSignal.any([signal, AbortSignal.timeout(CONNECT_MS)]);
  const { url, options } = await abortable(cluster.socket(path), soon).catch((error: unknown) => Promise.reject(failure(error, signal)));
  const socket = new WebSocket(url, [PROTOCOL], {
    ...options,
    handshakeTimeout: CONNECT_MS,
    perMessageDeflate: false,
    maxPayload: MOST_MESSAGE_BYTES,
  });
  const stop = () => socket.terminate();
  signal.addEventListener('abort', stop, { once: true });
  let pings: NodeJS.Timeout | undefined;
  let inputError: Error | null = null;
  try {
    return await new Promise<number>((resolve, reject) => {
      const onMessage = (message: Buffer) => {
        const bytes = message.subarray(1);
        if (message[0] === STDERR) onError(bytes);
        else if (message[0] === STATUS) resolve(statusOf(bytes));
        else if (message[0] === STDOUT) {
          const taken = onOutput(bytes);
          if (taken === undefined) return;
          socket.pause();
          taken.then(() => socket.resume(), reject);
        }
      };
      socket.on('message', (message: Buffer) => {
        try {
          onMessage(message);
        } catch (error) {
          reject(error as Error);
        }
      });
      socket.on('unexpected-response', (_request, answer) => void refusal(answer).then(reject, reject));
      socket.on('error', reject).on('close', () => reject(new Error('the connection of a command ended')));
      socket.on('open', () => {
        pings = setInterval(() => socket.ping(), PING_MS);
        if (input !== null) send(socket, input).catch((error: Error) => reject((inputError = error)));
      });
    });
  } catch (error) {
    throw inputError ?? failure(error, signal);
  } finally {
    clearInterval(pings);
    signal.removeEventListener('abort', stop);
    socket.terminate();
  }
}

/** No more than one piece waits in memory. A connection that ends meanwhile is noticed where it is read. */
async function send(socket: WebSocket, input: AsyncIterable<Buffer>): Promise<void> {
  for await (const bytes of input) {
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
      const message = Buffer.concat([Buffer.of(STDIN), bytes.subarray(at, at + PIECE_BYTES)]);
      const isSent = await new Promise<boolean>((resolve) => socket.send(message, (error) => resolve(!error)));
      if (!isSent) return;
    }
  }
}

interface Status {
  status?: string;
  reason?: string;
  message?: string;
  details?: { causes?: { reason?: string; message?: string }[] };
}

function statusOf(bytes: Buffer): number {
  const { status, reason, message, details } = JSON.parse(bytes.toString()) as Status;
  if (status === 'Success') return 0;
  const code = Number(details?.causes?.find((cause) => cause.reason === 'ExitCode')?.message);
  if (reason === 'NonZeroExitCode' && Number.isSafeInteger(code)) return code;
  throw new HostingError('instance_failed', `The program could not be started: ${message ?? reason ?? 'unknown'}.`);
}
