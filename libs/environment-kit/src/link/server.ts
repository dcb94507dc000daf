import { createServer, type Server, type Socket } from 'node:net';
import { PalestraError } from '@palestra/protocol';
import type { EnvironmentHost } from '../host/environment-host.ts';
import type { CallResult } from '../host/tool-output.ts';
import { encodeCallResult, lineWriter, readLines, type RequestFrame, toErrorFrame } from './frames.ts';
import { type LinkMethod, linkHandlers } from './methods.ts';

/** The server of the link, in the child process. The caller makes `server` listen at a `parseLinkAddress`. */
export function createLinkServer(host: EnvironmentHost): { server: Server; endConnections(): void } {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    serveLink(host, socket);
  });
  return { server, endConnections: () => sockets.forEach((socket) => socket.destroy()) };
}

function serveLink(host: EnvironmentHost, socket: Socket): void {
  const handlers = linkHandlers(host, () => !socket.destroyed);
  const running = new Map<number, AbortController>();
  const write = lineWriter(socket);
  socket.setNoDelay(true);

  const answer = async ({ id, method, params }: RequestFrame) => {
    const abort = new AbortController();
    running.set(id, abort);
    try {
      if (!Object.hasOwn(handlers, method)) throw new PalestraError('not_available', { detail: `unknown link method ${method}` });
      const handler = handlers[method as LinkMethod] as (params: unknown, signal: AbortSignal) => unknown;
      const result = await handler(params, abort.signal);
      write(method === 'call' ? encodeCallResult(id, result as CallResult) : JSON.stringify({ id, result }));
    } catch (error) {
      write(JSON.stringify({ id, error: toErrorFrame(error) }));
    } finally {
      running.delete(id);
    }
  };
  readLines(socket, (line) => {
    let frame: RequestFrame | { cancel: number };
    try {
      frame = JSON.parse(line) as typeof frame;
    } catch {
      socket.destroy();
      return;
    }
    if ('cancel' in frame) running.get(frame.cancel)?.abort(new PalestraError('backend_timeout'));
    else void answer(frame);
  });
  socket.on('error', () => socket.destroy());
  // Requests that wait for setup are cancelled; running tools continue.
  socket.on('close', () => {
    for (const abort of running.values()) abort.abort(new PalestraError('backend_unreachable'));
  });
}
