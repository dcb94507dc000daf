import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BlobError } from '../blob-store.ts';
import { S3BlobStore } from './s3-blob-store.ts';

/** Takes every connection and never says a word. */
let silent: Server;
const sockets = new Set<Socket>();
let store: (silenceMs?: number) => S3BlobStore;
beforeAll(async () => {
  silent = createServer((socket) => void sockets.add(socket.resume()));
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const endpoint = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const settings = { endpoint, bucket: 'b', region: 'us-east-1', accessKeyId: 'k', secretAccessKey: 's' };
  store = (silenceMs) => new S3BlobStore(settings, silenceMs);
});
afterAll(() => {
  for (const socket of sockets) socket.destroy();
  silent.close();
});

const body = Buffer.from('body');
const contentType = 'text/plain';
async function* pieces() {
  yield body;
}
const outcome = (work: Promise<unknown>) => work.then(String, (error: unknown) => error);

describe('an S3 server that takes connections and stays silent', () => {
  it.each<[string, (blobs: S3BlobStore, signal?: AbortSignal) => Promise<unknown>]>([
    ['put', (blobs, signal) => blobs.put('k', body, { contentType }, signal)],
    ['put of a stream', (blobs, signal) => blobs.put('k', pieces(), { contentType }, signal)],
    ['get', (blobs, signal) => blobs.get('k', undefined, signal)],
    ['delete', (blobs, signal) => blobs.delete('k', signal)],
  ])(
    'is unavailable: %s, after a while and at a deadline; who gave up by itself is told so',
    async (_name, ask) => {
      // The default silence is longer than this test may take.
      expect(await outcome(ask(store(200)))).toMatchObject({ constructor: BlobError, kind: 'unavailable' });
      expect(await outcome(ask(store(), AbortSignal.timeout(100)))).toMatchObject({ constructor: BlobError, kind: 'unavailable' });
      const giving = new AbortController();
      setTimeout(() => giving.abort(), 100);
      expect(await outcome(ask(store(), giving.signal))).toMatchObject({ name: 'AbortError' });
    },
    20_000,
  );
});
