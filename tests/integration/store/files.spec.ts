import { randomUUID } from 'node:crypto';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Config } from '../../../apps/api/src/platform/config.ts';
import { startServer, type TestServer } from '../../support/server.ts';

/** Uploads go through the service with S3 too; .ci/run starts a real one. */
const s3Endpoint = process.env['PALESTRA_TEST_S3_ENDPOINT'];
const stores = s3Endpoint ? ['file', 's3'] : ['file'];

async function bucket(): Promise<NonNullable<Config['s3']>> {
  const credentials = {
    accessKeyId: process.env['PALESTRA_TEST_S3_ACCESS_KEY'] ?? '',
    secretAccessKey: process.env['PALESTRA_TEST_S3_SECRET_KEY'] ?? '',
  };
  const name = `files-${Date.now()}`;
  const client = new S3Client({ endpoint: s3Endpoint!, region: 'us-east-1', forcePathStyle: true, credentials });
  await client.send(new CreateBucketCommand({ Bucket: name }));
  return { endpoint: s3Endpoint!, bucket: name, region: 'us-east-1', ...credentials };
}

describe.each(stores)('with objects in %s', (store) => {
  let server: TestServer;
  let id: string;
  beforeAll(async () => {
    server = await startServer({ s3: store === 's3' ? await bucket() : null });
    const created = await server.request('POST', '/v1/environments', {
      body: { name: 'with-files', namespace: server.orgName, description: 'd', isPrivate: true },
    });
    id = created.body.id;
  });
  afterAll(() => server.close());

  const urlFor = async (fileName: string, contentType = 'text/plain') => {
    const { body } = await server.request('POST', '/v1/files/upload-urls', {
      body: { environmentId: id, files: [{ fileName, contentType }] },
    });
    return body.urls[0].uploadUrl as string;
  };
  const put = (url: string, body: string, type = 'text/plain') => fetch(url, { method: 'PUT', body, headers: { 'content-type': type } });

  describe('files of an environment', () => {
    it('refuses unknown environments, bad paths, too many files and a missing key', async () => {
      const body = { environmentId: id, files: [{ fileName: 'a' }] };
      expect(await server.request('POST', '/v1/files/upload-urls', { body: { ...body, environmentId: randomUUID() } })).toMatchObject({
        status: 404,
      });
      expect(
        await server.request('POST', '/v1/files/upload-urls', { body: { ...body, files: [{ fileName: '../../etc/passwd' }] } }),
      ).toMatchObject({ status: 400 });
      expect(
        await server.request('POST', '/v1/files/upload-urls', {
          body: { ...body, files: Array.from({ length: 51 }, () => ({ fileName: 'a' })) },
        }),
      ).toMatchObject({ status: 422 });
      expect(await server.request('GET', `/v1/files/${id}`, { headers: { 'x-api-key': '' } })).toMatchObject({ status: 401 });
      expect(await server.request('DELETE', `/v1/files/${id}/nope.txt`)).toMatchObject({ status: 404, body: { code: 'file_not_found' } });
    });

    it('accepts uploads by signed URL, without a key and only as signed', async () => {
      const url = await urlFor('data/ü (1) n.txt');
      expect(url).toMatch(/^[\x21-\x7e]+$/);
      const altered = await put(url.replace('data', 'dato'), 'x');
      expect(altered.status).toBe(403);
      expect(await altered.json()).toMatchObject({ code: 'url_expired' });
      expect((await put(url, 'x', 'text/html')).status).toBe(400);
      expect((await put(url, 'hello')).status).toBe(200);
      expect((await put(await urlFor('data/deep/b.txt'), 'b')).status).toBe(200);
      expect((await put(await urlFor('a.txt'), 'a')).status).toBe(200);
      expect((await server.request('GET', `/v1/files/${id}?limit=200`)).body).toEqual({
        files: [{ path: 'a.txt', size: 1 }],
        folders: ['data'],
      });
      expect((await server.request('GET', `/v1/files/${id}?prefix=data%2F`)).body).toEqual({
        files: [{ path: 'data/ü (1) n.txt', size: 5 }],
        folders: ['data/deep'],
      });
    });

    it('accepts a file that is larger than any other body may be', async () => {
      const large = new Uint8Array(70 * 1024 * 1024).fill(65);
      const answer = await fetch(await urlFor('large.bin', 'application/octet-stream'), {
        method: 'PUT',
        body: large,
        headers: { 'content-type': 'application/octet-stream' },
      });
      expect(answer.status).toBe(200);
      expect((await server.request('GET', `/v1/files/${id}?prefix=large`)).body.files).toEqual([{ path: 'large.bin', size: large.length }]);
      await server.request('DELETE', `/v1/files/${id}/large.bin`);
    });

    it('deletes by one encoded path segment and counts exactly', async () => {
      expect((await server.request('DELETE', `/v1/files/${id}/${encodeURIComponent('data/deep/b.txt')}`)).body).toEqual({
        deletedCount: 1,
      });
      expect((await server.request('DELETE', `/v1/files/${id}/folder/${encodeURIComponent('data')}`)).body).toEqual({ deletedCount: 1 });
      expect((await server.request('GET', `/v1/files/${id}`)).body).toEqual({ files: [{ path: 'a.txt', size: 1 }], folders: [] });
    });
  });
});
