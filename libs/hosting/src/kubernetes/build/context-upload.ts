import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import WebSocket from 'ws';
import { HostingError } from '../../provider/hosting-error.ts';
import { type Cluster, failure } from '../cluster/cluster.ts';

/** Subprotocol of streams: the first byte of each message names one. Version 5 adds only the end of a single stream, which we do not need. */
const PROTOCOL = 'v4.channel.k8s.io';
const STDIN = 0;
const CONNECT_MS = 15_000;
const CLOSE_MS = 60_000;

/**
 * Sends a stream to the standard input of a container that reads it to its end and then ends. Rejects with `engine_unavailable` if the
 * connection breaks. Whether the container got everything is what its status says.
 */
export async function sendInput(
  cluster: Cluster,
  { pod, container }: { pod: string; container: string },
  input: Readable,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  const query = new URLSearchParams({ container, stdin: 'true', stdout: 'false', stderr: 'true', tty: 'false' });
  const { url, options } = await cluster.socket(`/api/v1/namespaces/${cluster.namespace}/pods/${pod}/attach?${query.toString()}`);
  const socket = new WebSocket(url, [PROTOCOL], { ...options, handshakeTimeout: CONNECT_MS, perMessageDeflate: false });
  const stop = () => socket.terminate();
  signal.addEventListener('abort', stop, { once: true });
  // Also after what is awaited here.
  const errors: Error[] = [];
  socket.on('error', (error) => errors.push(error));
  try {
    await once(socket, 'open', { signal });
    const closed = once(socket, 'close', { signal }).catch(() => {});
    for await (const chunk of input as AsyncIterable<Buffer>) await send(socket, chunk);
    await Promise.race([closed, sleep(CLOSE_MS, undefined, { ref: false })]);
  } catch (error) {
    if (signal.aborted) throw signal.reason as Error;
    if (errors[0]?.message.endsWith('server response: 403')) {
      const advice = 'Give its service account the Role that docs/hosting.md shows.';
      throw new HostingError('engine_unavailable', `This service may not send sources to pods (pods/attach). ${advice}`, { cause: error });
    }
    throw failure(errors[0] ?? error, signal);
  } finally {
    signal.removeEventListener('abort', stop);
    input.destroy();
    socket.terminate();
  }
}

/** Resolves when the chunk is written, so that no more than one waits in memory. */
function send(socket: WebSocket, chunk: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.send(Buffer.concat([Buffer.of(STDIN), chunk]), (error) => (error ? reject(error) : resolve()));
  });
}
