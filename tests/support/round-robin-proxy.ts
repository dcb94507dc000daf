import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';

export interface RoundRobinOptions {
  /** Ports of the replicas. */
  targets: number[];
  /** 0 takes any free port. */
  port?: number;
  /** Last segments of paths that it answers with 404 itself, as a server does that is older than the route. */
  withoutRoutes?: string[];
}

export interface RoundRobinProxy {
  url: string;
  port: number;
  /** Requests that each target was given. */
  served: number[];
  close(): Promise<void>;
}

/**
 * An HTTP balancer without stickiness: every *request* goes to the next replica, also those of one kept-alive connection.
 * A replica that takes no connection is skipped; an answer that breaks off, breaks off here too.
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
    const { method, url, headers } = request;
    // A connection for each request: a kept one could belong to a replica that died meanwhile, and nobody could say whether it ran.
    const upstream = http.request({ host: '127.0.0.1', port: targets[index], method, path: url, headers, agent: false });
    upstream.on('response', (answer) => {
      response.writeHead(answer.statusCode!, withoutConnection(answer.headers));
      response.flushHeaders();
      answer.on('error', () => response.destroy());
      answer.pipe(response);
    });
    upstream.on('socket', (socket) =>
      socket.once('connect', () => {
        served[index]! += 1;
        request.pipe(upstream);
      }),
    );
    upstream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED' && attempts > 1) forward(request, response, attempts - 1);
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

/** What says how long *that* connection lives is not for ours. */
function withoutConnection(headers: http.IncomingHttpHeaders): http.IncomingHttpHeaders {
  const { connection: _, 'keep-alive': __, ...rest } = headers;
  return rest;
}
