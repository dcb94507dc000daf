import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/** Handles a request of a test server on a real socket. */
export type Handler = (path: string, body: Record<string, unknown>, response: ServerResponse, request: IncomingMessage) => void;

/** Starts a server for one test. Returns its origin. */
export async function startTestServer(handle: Handler): Promise<string> {
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (piece: Buffer) => (text += piece.toString()));
    request.on('end', () => handle(request.url!, text ? (JSON.parse(text) as Record<string, unknown>) : {}, response, request));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export const json = (response: ServerResponse, body: unknown, status = 200) =>
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
