import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import tls from 'node:tls';
import { expect, test } from 'vitest';

// Its text goes into containers, so it is not TypeScript.
const file = new URL('gateway-tls.mjs', import.meta.url);
interface GatewayTls {
  serverName: (bytes: Buffer) => string | null | undefined;
  isSameName: (one: string, other: string) => boolean;
}
const { isSameName, serverName } = (await import(file.href)) as GatewayTls;

/** The first bytes that a TLS client sends. */
async function hello(options: tls.ConnectionOptions): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = tls.connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', ...options });
  client.on('error', () => {});
  try {
    const [socket] = (await once(server, 'connection')) as [Socket];
    const [bytes] = (await once(socket, 'data')) as [Buffer];
    return bytes;
  } finally {
    client.destroy();
    server.close();
  }
}

/** The same message in records of a few bytes. */
function fragmented(bytes: Buffer, size: number): Buffer {
  const message = bytes.subarray(5);
  const records: Buffer[] = [];
  for (let at = 0; at < message.length; at += size) {
    const part = message.subarray(at, at + size);
    records.push(Buffer.from([22, 3, 1, part.length >> 8, part.length & 255]), part);
  }
  return Buffer.concat(records);
}

test('the name of a client is read, with any version, from any number of records', async () => {
  for (const options of [{}, { maxVersion: 'TLSv1.2' }, { minVersion: 'TLSv1.3', ALPNProtocols: ['h2', 'http/1.1'] }] as const) {
    const bytes = await hello({ ...options, servername: 'files.example.org' });
    expect(serverName(bytes)).toBe('files.example.org');
    expect(serverName(Buffer.concat([bytes, Buffer.from('more')]))).toBe('files.example.org');
    for (const size of [1, 3, 100]) expect(serverName(fragmented(bytes, size))).toBe('files.example.org');
    for (let length = 0; length < bytes.length; length += 1) expect(serverName(bytes.subarray(0, length))).toBeUndefined();
  }
});

test('a client without a name has none, and what is not TLS has none', async () => {
  expect(serverName(await hello({ servername: '' }))).toBeNull();
  for (const text of ['GET / HTTP/1.1\r\nhost: a\r\n\r\n', 'SSH-2.0-x\r\n', '\x16\x03\x01\x00\x00', '\x16\x03\x01\x00\x04\x02\x00\x00\x00'])
    expect(serverName(Buffer.from(text, 'latin1')), text).toBeNull();
});

test('names are compared without regard to case and a last dot, and a star is no pattern', () => {
  expect(isSameName('Files.Example.org', 'files.example.ORG.')).toBe(true);
  for (const name of ['*.example.org', 'example.org', 'a.files.example.org', ''])
    expect(isSameName(name, 'files.example.org'), name).toBe(false);
});

test('a second name, and lengths that do not fit, are refused', async () => {
  const bytes = await hello({ servername: 'a.example', maxVersion: 'TLSv1.2' });
  const at = bytes.indexOf('a.example') - 9;
  const extension = bytes.subarray(at, at + 9 + 'a.example'.length);
  expect(extension.readUInt32BE(0)).toBe(14);
  const ciphers = 44 + bytes[43]!;
  const extensions = ciphers + 2 + bytes.readUInt16BE(ciphers) + 2;
  const withExtension = (added: Buffer) => {
    const longer = Buffer.concat([bytes, added]);
    // Lengths of the record, of the message and of its extensions.
    for (const [offset, size] of [
      [3, 2],
      [6, 3],
      [extensions, 2],
    ] as const)
      longer.writeUIntBE(bytes.readUIntBE(offset, size) + added.length, offset, size);
    return longer;
  };
  expect(serverName(withExtension(Buffer.from([250, 250, 0, 1, 0])))).toBe('a.example');
  expect(serverName(withExtension(extension))).toBeNull();
  for (let offset = 9; offset < bytes.length; offset += 1) {
    const broken = Buffer.from(bytes);
    broken[offset] = 255;
    expect(() => serverName(broken)).not.toThrow();
  }
});
