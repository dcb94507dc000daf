import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createOrganisation } from '../support/organisation.ts';
import { startServer, type TestServer } from '../support/server.ts';

/** Finding M3 of the audit: uploads by signed URL are bounded, stored as they are sent, and count for a quota. */

const QUOTA = 10_000_000;
let server: TestServer;
let id: string;
beforeAll(async () => {
  server = await startServer({ maxStoredBytes: QUOTA });
  id = (await environment('files')).id;
});
afterAll(() => server.close());

const environment = async (name: string) =>
  (await server.request('POST', '/v1/environments', { body: { name, namespace: server.orgName, description: '', isPrivate: true } })).body;
const urls = (fileName: string, environmentId = id) =>
  server.request('POST', '/v1/files/upload-urls', { body: { environmentId, files: [{ fileName, contentType: 'text/plain' }] } });
const urlFor = async (fileName: string) => (await urls(fileName)).body.urls[0].uploadUrl as string;
async function put(url: string, body: BodyInit, headers = {}) {
  const init = { method: 'PUT', body, headers: { 'content-type': 'text/plain', ...headers }, duplex: 'half' } as RequestInit;
  const answer = await fetch(url, init);
  return { status: answer.status, body: await answer.json() };
}
/** Without a Content-Length. */
const streamed = (bytes: number) =>
  new ReadableStream({
    pull(controller) {
      const size = Math.min(1_000_000, bytes);
      bytes -= size;
      if (size > 0) controller.enqueue(new Uint8Array(size));
      else controller.close();
    },
  });
const sizes = async () => (await server.request('GET', `/v1/files/${id}`)).body.files as { path: string; size: number }[];

test('M3: the size is part of the signature', async () => {
  const url = await urlFor('a');
  expect(Number(new URL(url).searchParams.get('maxBytes'))).toBeLessThanOrEqual(QUOTA);
  expect(await put(url.replace(/maxBytes=\d+/, 'maxBytes=1000000000000'), 'x')).toMatchObject({
    status: 403,
    body: { code: 'url_expired' },
  });
  expect((await put(url.replace(/maxBytes=\d+&?/, ''), 'x')).status).toBe(403);
  expect(await put(url, new Uint8Array(QUOTA + 1))).toMatchObject({ status: 413, body: { code: 'body_too_large' } });
  const { status, body } = await put(url, streamed(QUOTA + 5_000_000));
  expect([status, (body as { code: string }).code]).toEqual([413, 'body_too_large']);
  expect(await sizes()).toEqual([]);
});

test('M3: a compressed body is not decompressed', async () => {
  const bomb = gzipSync(Buffer.alloc(50_000_000));
  expect(await put(await urlFor('bomb'), bomb, { 'content-encoding': 'gzip' })).toEqual({ status: 200, body: { size: bomb.length } });
  await server.request('DELETE', `/v1/files/${id}/bomb`);
});

test('M3: an organisation stores no more than its quota, in any way', async () => {
  // Signed while there was room.
  const signed = await Promise.all(Array.from({ length: 8 }, (_, at) => urlFor(`part-${at}`)));
  const answers = await Promise.all(signed.map((url, at) => put(url, at % 2 === 0 ? new Uint8Array(4_000_000) : streamed(4_000_000))));
  expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThan(0);
  for (const { status, body } of answers) {
    if (status !== 200) expect([status, (body as { code: string }).code]).toEqual([403, 'storage_quota_exceeded']);
  }
  // One that waited for the others' room may have been refused; what is left takes more.
  for (let at = 0; at < 12; at += 1) await put(signed[at % 8]!, new Uint8Array(4_000_000));
  expect((await sizes()).reduce((sum, { size }) => sum + size, 0)).toBeLessThanOrEqual(QUOTA);

  // Another environment of the organisation does not give it more.
  const other = (await environment('others')).id;
  const more = await urls('more', other);
  if (more.status === 200) expect([403, 413]).toContain((await put(more.body.urls[0].uploadUrl, new Uint8Array(4_000_000))).status);

  // Deleting makes room, and the same file again takes no more.
  await server.request('DELETE', `/v1/files/${id}/folder/${encodeURIComponent('none')}`);
  for (const { path } of await sizes()) await server.request('DELETE', `/v1/files/${id}/${encodeURIComponent(path)}`);
  const again = await urlFor('again');
  for (let at = 0; at < 4; at += 1) expect((await put(again, new Uint8Array(4_000_000))).status).toBe(200);

  // Files go with their environment, also from the store.
  expect((await server.request('DELETE', `/v1/environments/${server.orgName}/files`)).status).toBe(200);
  const { rows } = await server.database.pool.query('SELECT key FROM environment_files');
  expect(rows).toEqual([]);
  expect((await put(again, 'x')).status).toBe(403);
});

test('the files of a public environment are listed for its organisation only', async () => {
  const shown = await server.request('POST', '/v1/environments', { body: { name: 'shown', isPrivate: false } });
  await put((await urls('answers/test.parquet', shown.body.id)).body.urls[0].uploadUrl, 'x');
  const stranger = { 'x-api-key': (await createOrganisation(server.url, server.apiKey)).apiKey };
  for (const path of [`/v1/files/${shown.body.id}`, `/v1/files/${shown.body.id}?prefix=answers%2F`])
    expect(await server.request('GET', path, { headers: stranger })).toMatchObject({ status: 403, body: { code: 'forbidden' } });
  expect((await server.request('GET', `/v1/files/${shown.body.id}`)).body.folders).toEqual(['answers']);
});
