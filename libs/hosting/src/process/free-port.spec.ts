import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { freePort, portOrFree } from './free-port.ts';

async function holding(port: number) {
  const server = createServer().listen(port, '127.0.0.1');
  await once(server, 'listening');
  return { close: () => new Promise((resolve) => server.close(resolve)) };
}

test('is outside the ephemeral range and free', async () => {
  const ports = await Promise.all(Array.from({ length: 20 }, () => freePort('127.0.0.1', 30_000)));
  for (const port of ports) expect([port >= 18_000, port < 30_000]).toEqual([true, true]);
  const held = await holding(ports[0]!);
  await held.close();
});

test('is reserved: no other call returns it, although nothing listens at it yet', async () => {
  const ports: number[] = [];
  // From 500 ports.
  for (let call = 0; call < 200; call += 1) ports.push(await freePort('127.0.0.1', 1_524));
  expect(new Set(ports).size).toBe(200);
  const [mine] = ports;
  await expect(once(createSocket('udp4').bind({ port: mine, address: '127.0.0.1' }), 'listening')).rejects.toThrow('EADDRINUSE');
  await (await holding(mine!)).close();
});

test('is the wanted one, unless another process has it, which may not listen yet', async () => {
  const wanted = await freePort();
  expect(await portOrFree(wanted)).not.toBe(wanted);
  // One that is not reserved.
  const other = await freePort('127.0.0.1', 1_024);
  expect(await portOrFree(other)).toBe(other);
  expect(await portOrFree(other)).toBe(other);
  const held = await holding(other);
  expect(await portOrFree(other)).not.toBe(other);
  await held.close();
});

test('is any free port if the ephemeral range covers all ports', async () => {
  const port = await freePort('127.0.0.1', 1_024);
  expect(port).toBeGreaterThan(1_024);
  await (await holding(port)).close();
});

test('rejects for a host that is not local', async () => {
  await expect(freePort('192.0.2.1')).rejects.toMatchObject({ code: 'EADDRNOTAVAIL' });
});
