import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import type { LookupAddress } from 'node:dns';
import { expect, onTestFinished, test } from 'vitest';
import { outboundAgent } from './connect.ts';
import { OutboundPolicy } from './outbound-policy.ts';

/** A server that must not be reached; counts connections. */
async function listener() {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.on('error', () => {}).end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return { port: (server.address() as AddressInfo).port, connections: () => connections };
}

const lookup = (policy: OutboundPolicy, name: string, all: boolean) =>
  new Promise<string | LookupAddress[]>((resolve, reject) => {
    policy.lookup(80)(name, { all }, (error, found) => (error ? reject(error) : resolve(found)));
  });

async function reach(policy: OutboundPolicy, origin: string): Promise<string> {
  const agent = outboundAgent(policy, 2_000, {});
  onTestFinished(() => agent.destroy());
  const answer = await agent.request({ origin, path: '/', method: 'GET' });
  return answer.body.text();
}

test('checks the addresses of a name when the connection opens', async () => {
  await expect(lookup(new OutboundPolicy('refused'), 'localhost', true)).rejects.toMatchObject({ code: 'upstream_address_refused' });
  await expect(lookup(new OutboundPolicy('refused'), 'localhost', false)).rejects.toMatchObject({ code: 'upstream_address_refused' });
  const addresses = (await lookup(new OutboundPolicy(['127.0.0.0/8']), 'localhost', true)) as LookupAddress[];
  expect(addresses.map(({ address }) => address)).toEqual(['127.0.0.1']);
  expect(await lookup(new OutboundPolicy(['127.0.0.0/8']), 'localhost', false)).toBe('127.0.0.1');
});

test('refuses addresses with the same error for open and closed ports', async () => {
  const { port, connections } = await listener();
  for (const host of ['127.0.0.1', 'localhost', '[::ffff:7f00:1]', '0.0.0.0']) {
    const [open, closed] = await Promise.all(
      [port, 9].map((at) => reach(new OutboundPolicy('refused'), `http://${host}:${at}`).catch((error: unknown) => error)),
    );
    expect(open, host).toMatchObject({ code: 'upstream_address_refused' });
    expect((open as Error).message, host).toBe((closed as Error).message);
  }
  expect(connections()).toBe(0);
  expect(await reach(new OutboundPolicy('allowed'), `http://localhost:${port}`)).toBe('hi');
});

test('allows only the endpoint that it was made for', async () => {
  const [own, other] = [await listener(), await listener()];
  const policy = OutboundPolicy.only(`http://127.0.0.1:${own.port}`);
  expect(await reach(policy, `http://127.0.0.1:${own.port}`)).toBe('hi');
  for (const origin of [`http://127.0.0.1:${other.port}`, `http://127.0.0.2:${own.port}`, 'http://192.0.2.1']) {
    await expect(reach(policy, origin), origin).rejects.toMatchObject({ code: 'upstream_address_refused' });
  }
  expect(other.connections()).toBe(0);
});

test("refuses the service's own database in every spelling, even if its network is allowed", async () => {
  const { port, connections } = await listener();
  const policy = new OutboundPolicy('allowed');
  policy.protect(`postgresql://user:secret@localhost:${port}/palestra`);
  for (const host of ['127.0.0.1', '127.0.0.2', 'localhost', '[::1]', '[::ffff:127.0.0.1]', '0.0.0.0', '[::]']) {
    await expect(reach(policy, `http://${host}:${port}`), host).rejects.toMatchObject({ code: 'upstream_address_refused' });
  }
  expect(connections()).toBe(0);
  const other = await listener();
  expect(await reach(policy, `http://127.0.0.1:${other.port}`)).toBe('hi');
});
