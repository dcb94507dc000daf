import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { BodyTooLargeError, readBounded } from './read-bounded.ts';

const servers: ReturnType<typeof createServer>[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});
async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

it('reads a body up to the bound', async () => {
  const url = await serve((_, response) => response.end('12345'));
  expect(String(await readBounded((await fetch(url)).body, 5))).toBe('12345');
  await expect(readBounded((await fetch(url)).body, 4)).rejects.toThrow(BodyTooLargeError);
  expect(await readBounded(null, 4)).toHaveLength(0);
});

it('ends a body that never ends', async () => {
  const piece = Buffer.alloc(64 * 1024);
  let ended: Promise<unknown> | undefined;
  const url = await serve((_, response) => {
    ended = once(response, 'close');
    const write = () => {
      while (response.write(piece));
    };
    response.on('drain', write);
    write();
  });
  await expect(readBounded((await fetch(url)).body, 1_000_000)).rejects.toThrow(BodyTooLargeError);
  await ended;
});

it('stops with the deadline of the request when a body stalls', async () => {
  const url = await serve((_, response) => void response.write('{'));
  const deadline = new AbortController();
  const answer = await fetch(url, { signal: deadline.signal });
  const reading = readBounded(answer.body, 100);
  deadline.abort(new DOMException('too late', 'TimeoutError'));
  await expect(reading).rejects.toMatchObject({ name: 'TimeoutError' });
});
