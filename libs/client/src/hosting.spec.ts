import type { ServerResponse } from 'node:http';
import { describe, expect, onTestFinished, test } from 'vitest';
import { PalestraClient } from './client.ts';
import { type Handler, json, startTestServer } from './test-server.fixture.ts';

async function clientOf(handle: Handler): Promise<PalestraClient> {
  const client = new PalestraClient({ url: await startTestServer(handle) });
  onTestFinished(async () => void (await client.close()));
  return client;
}

const line = (seq: number) => ({
  seq,
  source: 's',
  at: '2026-11-27T00:00:00.000Z',
  stream: 'stdout',
  severity: 'info',
  text: `line ${seq}`,
});
const write = (response: ServerResponse, ...seqs: number[]) => response.write(seqs.map((seq) => `${JSON.stringify(line(seq))}\n`).join(''));
const searchOf = (path: string) => Object.fromEntries(new URL(path, 'http://x').searchParams);

async function seqsOf(lines: AsyncIterable<{ seq: number }>): Promise<number[]> {
  const seqs: number[] = [];
  for await (const { seq } of lines) seqs.push(seq);
  return seqs;
}

describe('a followed build log', () => {
  test('has every line once although its connection breaks and its server stops', async () => {
    const requests: Record<string, string>[] = [];
    const client = await clientOf((path, _body, response) => {
      if (path === '/v1/deploys/d') return void json(response, { state: requests.length < 3 ? 'building' : 'ready' });
      const search = searchOf(path);
      requests.push(search);
      response.writeHead(200, { 'content-type': 'application/x-ndjson' });
      // The connection breaks within a line.
      if (requests.length === 1) {
        write(response, 1, 2);
        response.write('{"seq":3,"te');
        setTimeout(() => response.destroy(), 20);
      } else if (requests.length === 2) {
        // An empty line keeps the connection alive. The server stops.
        response.write('\n');
        write(response, 3);
        response.end();
      } else if (search['follow'] === 'true') response.end();
      else {
        write(response, 4);
        response.end();
      }
    });
    expect(await seqsOf(client.hosting.deployLogs('d', { follow: true }))).toEqual([1, 2, 3, 4]);
    expect(requests.map(({ after, follow }) => [after, follow])).toEqual([
      [undefined, 'true'],
      ['2', 'true'],
      ['3', 'true'],
      ['3', undefined],
    ]);
  });

  test('ends with the signal of its reader', async () => {
    const client = await clientOf((_path, _body, response) => void write(response, 1));
    const reader = new AbortController();
    const read = (async () => {
      for await (const { seq } of client.hosting.logs('a/b', { follow: true, signal: reader.signal }))
        reader.abort(new Error(`read ${seq}`));
    })();
    await expect(read).rejects.toThrow('read 1');
  });

  test('fails where the server refuses it', async () => {
    const client = await clientOf((_path, _body, response) => json(response, { code: 'deploy_not_found', detail: 'No such deploy.' }, 404));
    await expect(seqsOf(client.hosting.deployLogs('d', { follow: true }))).rejects.toMatchObject({ code: 'deploy_not_found' });
  });
});

test('a log is read page by page, the end of it in one page', async () => {
  const paths: string[] = [];
  const client = await clientOf((path, _body, response) => {
    paths.push(path);
    const { after = '0', tail, limit } = searchOf(path);
    const first = tail === undefined ? Number(after) + 1 : 12_000 - Number(tail) + 1;
    const last = Math.min(12_000, first + Number(limit) - 1);
    response.end(Array.from({ length: last - first + 1 }, (_, index) => `${JSON.stringify(line(first + index))}\n`).join(''));
  });
  expect(await seqsOf(client.hosting.logs('a/b', { version: 2, search: 'x y', severity: 'error' }))).toHaveLength(12_000);
  expect(paths.map(searchOf)).toEqual([
    { limit: '10000', severity: 'error', q: 'x y', version: '2' },
    { after: '10000', limit: '10000', severity: 'error', q: 'x y', version: '2' },
  ]);
  expect(await seqsOf(client.hosting.logs('a/b', { tail: 2 }))).toEqual([11_999, 12_000]);
  expect(paths).toHaveLength(3);
});

test('another answer than lines of JSON is an error, not a log', async () => {
  const client = await clientOf((_path, _body, response) => void response.end('<html>\n'));
  await expect(seqsOf(client.hosting.logs('a/b'))).rejects.toThrow('did not answer with lines of JSON');
});

test('a folder is uploaded as it is read, once', async () => {
  const requests: unknown[] = [];
  let body = '';
  const client = await clientOf((path, _body, response, request) => {
    requests.push([request.method, path, request.headers['content-type']]);
    json(response, { id: 'd', state: 'queued' }, 202);
  });
  async function* archive() {
    // The server of the test reads bodies as JSON.
    for (const part of ['{"a":', '1}']) {
      body += part;
      yield Buffer.from(part);
    }
  }
  const deploy = await client.hosting.deployFolder('a/b', archive(), { channel: null, create: true });
  expect(deploy).toMatchObject({ id: 'd' });
  expect(body).toBe('{"a":1}');
  expect(requests).toEqual([['POST', '/v1/environments/a/b/deploys?channel=&create=true', 'application/gzip']]);
});

test('a deploy and a rollback are not repeated, other requests are', async () => {
  const counts: Record<string, number> = {};
  const client = await clientOf((path, _body, response, request) => {
    const key = `${request.method} ${path}`;
    counts[key] = (counts[key] ?? 0) + 1;
    if (counts[key] === 1) response.writeHead(503).end();
    else json(response, { deploys: [], secrets: [] });
  });
  await expect(client.hosting.deploy('a/b', { source: { kind: 'image', image: 'x' } })).rejects.toMatchObject({ status: 503 });
  await expect(client.hosting.rollback('a/b')).rejects.toMatchObject({ status: 503 });
  await client.hosting.setSecret('a/b', 'KEY', 'v');
  await client.hosting.deploys('a/b');
  expect(counts).toEqual({
    'POST /v1/environments/a/b/deploys': 1,
    'POST /v1/environments/a/b/rollback': 1,
    'PUT /v1/environments/a/b/secrets/KEY': 2,
    'GET /v1/environments/a/b/deploys': 2,
  });
});
