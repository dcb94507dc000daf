import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BlobStore, checkKey } from './blob-store.ts';
import { FileBlobStore } from './file/file-blob-store.ts';
import { UrlSigner } from './file/url-signer.ts';
import { S3BlobStore } from './s3/s3-blob-store.ts';

const s3Endpoint = process.env.PALESTRA_TEST_S3_ENDPOINT;
const credentials = {
  accessKeyId: process.env.PALESTRA_TEST_S3_ACCESS_KEY ?? '',
  secretAccessKey: process.env.PALESTRA_TEST_S3_SECRET_KEY ?? '',
};

let folder: string;
const signer = new UrlSigner(Buffer.from('secret'), () => 'http://127.0.0.1:1', Date.now);

const stores: Record<string, () => Promise<BlobStore>> = {
  async file() {
    folder = await mkdtemp(path.join(tmpdir(), 'palestra-blobs-'));
    const store = new FileBlobStore(folder, signer);
    await store.open();
    return store;
  },
};
if (s3Endpoint) {
  stores.s3 = async () => {
    const bucket = `blobs-${Date.now()}`;
    const client = new S3Client({ endpoint: s3Endpoint, region: 'us-east-1', forcePathStyle: true, credentials });
    await client.send(new CreateBucketCommand({ Bucket: bucket }));
    return new S3BlobStore({ endpoint: s3Endpoint, bucket, region: 'us-east-1', ...credentials });
  };
}

it('runs against a real S3 server in CI', () => {
  expect(process.env.CI && !s3Endpoint ? 'PALESTRA_TEST_S3_ENDPOINT is not set' : 'fine').toBe('fine');
});

describe.each(Object.keys(stores))('blob store on %s', (kind) => {
  let store: BlobStore;
  const text = (body: string) => Buffer.from(body);
  const options = { contentType: 'text/plain' };
  beforeAll(async () => {
    store = await stores[kind]!();
  });
  afterAll(async () => {
    if (kind === 'file') await rm(folder, { recursive: true, force: true });
  });
  const read = async (key: string, range?: { start: number; end?: number }) =>
    (await buffer((await store.get(key, range)).body)).toString();

  it.each(['', '/a', 'a//b', '../a', 'a/..', 'a\u0000', 'x'.repeat(1000)])('refuses the key %j', async (key) => {
    await expect((async () => store.put(key, text('x'), options))()).rejects.toMatchObject({ kind: 'invalid_key' });
  });

  it('says not_found for a key that is not there', async () => {
    await expect(store.get('missing')).rejects.toMatchObject({ kind: 'not_found' });
    await expect(store.head('missing')).rejects.toMatchObject({ kind: 'not_found' });
    await expect(store.delete('missing')).resolves.toBeUndefined();
  });

  it('gives back what was put, whole, in ranges and with its type', async () => {
    await store.put('dir/ü n.txt', text('hello world'), { contentType: 'text/x-test' });
    expect(await read('dir/ü n.txt')).toBe('hello world');
    expect(await read('dir/ü n.txt', { start: 6 })).toBe('world');
    expect(await read('dir/ü n.txt', { start: 0, end: 4 })).toBe('hello');
    expect(await store.head('dir/ü n.txt')).toMatchObject({ size: 11, contentType: 'text/x-test' });
    await expect(store.get('dir/ü n.txt', { start: 99 })).rejects.toMatchObject({ kind: 'invalid_range' });
  });

  it('streams a large body', async () => {
    const part = Buffer.alloc(1024 * 1024, 7);
    const info = await store.put('large', Readable.from(Array.from({ length: 20 }, () => part)), options);
    expect(info.size).toBe(20 * 1024 * 1024);
  });

  it('throws the error of a body as it is, and stores nothing', async () => {
    const failure = new Error('the source is damaged');
    const failing = async function* () {
      yield Buffer.alloc(100_000);
      await Promise.resolve();
      throw failure;
    };
    await expect(store.put('failing', failing(), options)).rejects.toBe(failure);
    await expect(store.head('failing')).rejects.toMatchObject({ kind: 'not_found' });
  });

  it('lets one of eight racing writers win with ifAbsent', async () => {
    const results = await Promise.allSettled(
      Array.from({ length: 8 }, (_, i) => store.put('race', text(String(i)), { ...options, ifAbsent: true })),
    );
    expect(results.filter((result) => result.status === 'fulfilled')).toHaveLength(1);
    for (const result of results) if (result.status === 'rejected') expect(result.reason).toMatchObject({ kind: 'exists' });
  });

  it('lists by prefix, by page and by folder in byte order, and deletes by prefix', async () => {
    const keys = ['list/a', 'list/b-1', 'list/b/1', 'list/b/2', 'list/c'];
    for (const key of keys.toReversed()) await store.put(key, text('1'), options);
    const first = await store.list({ prefix: 'list/', limit: 3 });
    const second = await store.list({ prefix: 'list/', limit: 3, pageToken: first.nextPageToken ?? '' });
    expect([...first.blobs, ...second.blobs].map(({ key }) => key)).toEqual(keys);
    expect(second.nextPageToken).toBeNull();
    const folded = await store.list({ prefix: 'list/', delimiter: '/' });
    expect(folded.folders).toEqual(['list/b/']);
    expect(folded.blobs.map(({ key }) => key)).toEqual(['list/a', 'list/b-1', 'list/c']);
    for (const prefix of ['list/b/', 'list/b', 'list/none/', 'list']) {
      const expected = keys.filter((key) => key.startsWith(prefix));
      expect((await store.list({ prefix })).blobs.map(({ key }) => key)).toEqual(expected);
    }
    expect((await store.list({ prefix: '../' })).blobs).toEqual([]);
    expect(await store.deletePrefix('../')).toBe(0);
    expect(await store.deletePrefix('list/')).toBe(5);
    expect((await store.list({ prefix: 'list/' })).blobs).toEqual([]);
  });

  it('presigns ASCII URLs', async () => {
    const url = await store.presignPut('dir/ü (1) n.txt', { contentType: 'text/plain', expiresInSeconds: 60 });
    expect(url).toMatch(/^[\x21-\x7e]+$/);
    if (kind !== 's3') return;
    expect((await fetch(url, { method: 'PUT', body: 'signed', headers: { 'content-type': 'text/plain' } })).status).toBe(200);
    const got = await fetch(await store.presignGet('dir/ü (1) n.txt', { expiresInSeconds: 60, fileName: 'x.txt' }));
    expect(await got.text()).toBe('signed');
    expect((await fetch(url.replace('dir', 'dix'), { method: 'PUT', body: 'x' })).status).toBe(403);
  });
});

describe('UrlSigner', () => {
  let now = 1_000_000;
  const clocked = new UrlSigner(
    Buffer.from('secret'),
    () => 'http://host',
    () => now,
  );
  const signed = new URL(clocked.sign({ method: 'PUT', key: 'a/ü', contentType: 'text/plain' }, 60));

  it('refuses another method, another key, an altered type and an expired URL', () => {
    expect(clocked.verify('GET', 'a/ü', signed.searchParams)).toBeNull();
    expect(clocked.verify('PUT', 'a/u', signed.searchParams)).toBeNull();
    const altered = new URLSearchParams(signed.searchParams);
    altered.set('contentType', 'text/html');
    expect(clocked.verify('PUT', 'a/ü', altered)).toBeNull();
    now += 61_000;
    expect(clocked.verify('PUT', 'a/ü', signed.searchParams)).toBeNull();
    now -= 61_000;
  });

  it('accepts what it signed', () => {
    expect(clocked.verify('PUT', 'a/ü', signed.searchParams)).toMatchObject({ contentType: 'text/plain' });
  });
});

it('checkKey takes ordinary keys', () => {
  expect(checkKey('org/x/ü n (1).txt')).toBe('org/x/ü n (1).txt');
});
