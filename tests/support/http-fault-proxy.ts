import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { randomOf } from './random.ts';

/** What can happen to a request. `lost`: it is served, and the response is replaced by a 502. */
const FAULTS = [429, 502, 503, 'lost', 'cut', 'stall'] as const;
type Fault = (typeof FAULTS)[number];

export interface HttpFaultProxy {
  url: string;
  port: number;
  /** How often each fault has happened. */
  counts: Record<string, number>;
  /** Sends requests to this port from now on. */
  aim(port: number): void;
  /** Stops causing faults. */
  calm(): void;
  close(): Promise<void>;
}

export interface HttpFaultOptions {
  port: number;
  /** Share of requests with a fault, from 0 to 1. */
  share: number;
  seed?: number;
  /** A stalled response is cut after this time. */
  stallMs?: number;
}

/** An HTTP proxy, as a load balancer in front of the service, that refuses, loses, cuts and stalls a share of the requests. */
export async function startHttpFaultProxy({ port, share, seed = 1, stallMs = 5_000 }: HttpFaultOptions): Promise<HttpFaultProxy> {
  const random = randomOf(seed);
  const agent = new http.Agent({ keepAlive: true });
  const counts: Record<string, number> = Object.fromEntries(FAULTS.map((fault) => [fault, 0]));
  let target = port;
  let calm = false;
  let faults = 0;

  const server = http.createServer((request, response) => {
    // They take turns, so that each happens after few requests.
    const fault = !calm && random() < share ? FAULTS[faults++ % FAULTS.length]! : null;
    if (fault !== null) counts[fault]! += 1;
    request.on('error', () => {});
    response.on('error', () => {});
    if (typeof fault === 'number') {
      request.resume();
      return void response.writeHead(fault, { 'content-type': 'text/html' }).end(`<h1>${fault}</h1>`);
    }
    forward(request, response, fault);
  });

  function forward(request: http.IncomingMessage, response: http.ServerResponse, fault: Fault | null): void {
    const { method = 'GET', url = '/', headers } = request;
    const upstream = http.request({ host: '127.0.0.1', port: target, method, path: url, headers, agent }, (answer) => {
      if (fault === 'lost') {
        answer.resume();
        answer.once('end', () => response.writeHead(502, { 'content-type': 'text/html' }).end('<h1>502</h1>'));
        return;
      }
      response.writeHead(answer.statusCode!, answer.headers);
      if (fault === null) return void answer.pipe(response);
      answer.once('data', (data: Buffer) => {
        response.write(data.subarray(0, Math.floor(data.length * random())));
        answer.resume();
        if (fault === 'cut') setImmediate(() => request.socket.resetAndDestroy());
        else setTimeout(() => request.socket.destroy(), stallMs).unref();
      });
    });
    upstream.on('error', () => request.socket.destroy());
    // A client that leaves does not undo its request.
    request.pipe(upstream);
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const own = (server.address() as AddressInfo).port;
  return {
    url: `http://127.0.0.1:${own}`,
    port: own,
    counts,
    aim: (next) => void (target = next),
    calm: () => void (calm = true),
    async close() {
      agent.destroy();
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
