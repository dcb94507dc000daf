import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Forwarder {
  url: string;
  /** Requests seen whose path ends so. */
  count(suffix: string): number;
  /** Breaks the connection of a running answer after its first piece; resolves when that happened. */
  cutAfterFirstPiece(suffix: string): Promise<void>;
  close(): Promise<void>;
}

/** A real HTTP proxy that breaks connections when it is told to. */
export async function startForwarder(target: string): Promise<Forwarder> {
  const seen: string[] = [];
  let cut: { suffix: string; done: () => void } | null = null;
  const server = http.createServer((request, response) => {
    const path = request.url ?? '';
    seen.push(path);
    const upstream = http.request(target + path, { method: request.method, headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.on('data', (piece: Buffer) => {
        response.write(piece);
        if (cut === null || !path.endsWith(cut.suffix)) return;
        const { done } = cut;
        cut = null;
        setTimeout(() => {
          response.destroy();
          done();
        }, 50);
      });
      answer.on('end', () => response.end());
      answer.on('error', () => response.destroy());
    });
    upstream.on('error', () => response.destroy());
    response.on('close', () => upstream.destroy());
    request.pipe(upstream);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    count: (suffix) => seen.filter((path) => path.endsWith(suffix)).length,
    cutAfterFirstPiece: (suffix) => new Promise((resolve) => (cut = { suffix, done: resolve })),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
