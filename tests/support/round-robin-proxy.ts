import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';

export interface RoundRobinOptions {
  /** Ports of the replicas on this machine, or their addresses. The caller may change the list. */
  targets: (number | { host: string; port: number })[];
  /** 0: any free port. */
  port?: number;
  /** Last segments of paths for which the proxy returns 404, like an older server without the route. */
  withoutRoutes?: string[];
}

export interface RoundRobinProxy {
  url: string;
  port: number;
  /** Number of requests per target. */
  served: number[];
  close(): Promise<void>;
}

/** The request has reached nobody. */
const NOT_CONNECTED = new Set(['ECONNREFUSED', 'EHOSTUNREACH']);

/**
 * An HTTP load balancer without sticky sessions: every *request* goes to the next replica, also on a kept-alive connection. Skips
 * replicas that refuse connections. An answer that breaks off also breaks off here.
 */
export async function startRoundRobinProxy(options: RoundRobinOptions): Promise<RoundRobinProxy> {
  const { targets } = options;
  const served = targets.map(() => 0);
  let turn = 0;

  const server = http.createServer({ noDelay: true, keepAliveTimeout: 75_000 }, (request, response) => {
    const last = request.url!.split('?', 1)[0]!.split('/').at(-1)!;
    if (options.withoutRoutes?.includes(last)) {
      request.resume();
      response.writeHead(404, { 'content-type': 'application/json' }).end('{"detail":"Not Found"}');
      return;
    }
    forward(request, response, targets.length);
  });

  function forward(request: http.IncomingMessage, response: http.ServerResponse, attempts: number): void {
    const index = turn++ % targets.length;
    const target = targets[index];
    const address = typeof target === 'object' ? target : { host: '127.0.0.1', port: target };
    const { method, url, headers } = request;
    // Opens a connection per request, because a kept-alive one may belong to a dead replica, and then the outcome of the request is
    // unknown.
    const upstream = http.request({ ...address, method, path: url, headers, agent: false });
    upstream.on('response', (answer) => {
      response.writeHead(answer.statusCode!, withoutConnection(answer.headers));
      response.flushHeaders();
      answer.on('error', () => response.destroy());
      answer.pipe(response);
    });
    upstream.on('socket', (socket) =>
      socket.once('connect', () => {
        served[index] = (served[index] ?? 0) + 1;
        request.pipe(upstream);
      }),
    );
    upstream.on('error', (error: NodeJS.ErrnoException) => {
      if (NOT_CONNECTED.has(error.code ?? '') && attempts > 1) forward(request, response, attempts - 1);
      else response.destroy();
    });
    response.on('close', () => upstream.destroy());
  }

  server.listen(options.port ?? 0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    served,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Hop-by-hop headers. */
function withoutConnection(headers: http.IncomingHttpHeaders): http.IncomingHttpHeaders {
  const { connection: _, 'keep-alive': __, ...rest } = headers;
  return rest;
}
