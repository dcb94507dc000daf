import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ensureTagged, inspectImage } from '../build/image-pull.ts';
import { Engine } from './engine.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'palestra-engine-'));
const socketPath = path.join(folder, 'engine.sock');
const engine = new Engine({ host: `unix://${socketPath}` });
const { signal } = new AbortController();
const asked: string[] = [];
let hasImage = false;
let removals = 0;

const answers: Record<string, (response: http.ServerResponse) => void> = {
  '/json': (response) => response.end('{"a":[1]}'),
  '/removing': (response) =>
    (removals -= 1) < 0
      ? response.end('[]')
      : response
          .writeHead(500)
          .end(`{"message":"retrieving parent of image sha256:b2: reading image \\"b2\\" as image: top layer not found"}`),
  '/empty': (response) => response.writeHead(204).end(),
  '/text': (response) => response.end('OK'),
  '/refused': (response) => response.writeHead(409).end('{"message":"in use\\n"}'),
  '/refused-text': (response) => response.writeHead(500).end('broken'),
  '/refused-empty': (response) => response.writeHead(500).end(),
  '/large': (response) => {
    const block = Buffer.alloc(2 ** 20, ' ');
    const write = () => {
      while (!response.destroyed && response.write(block));
    };
    response.on('drain', write);
    write();
  },
  '/slow': (response) => response.write('{'),
  '/images/docker.io/library/a:1/json': (response) =>
    hasImage ? response.end('{"Id":"a1","Size":1}') : response.writeHead(404).end('{"message":"no such image"}'),
  '/images/create': (response) => {
    hasImage = true;
    response.end('{"status":"Pulling"}\n');
  },
  '/images/sha256:a1/tag': (response) => response.writeHead(201).end(),
};
const server = http.createServer((request, response) => {
  asked.push(`${request.method} ${request.url}`);
  const answer = answers[request.url!.split('?')[0]!] ?? ((unknown) => unknown.writeHead(404).end());
  answer(response);
});

beforeAll(async () => {
  server.listen(socketPath);
  await once(server, 'listening');
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true });
});

const get = (name: string, deadlineMs?: number) => engine.request({ method: 'GET', path: name, ...(deadlineMs && { deadlineMs }) }, signal);

test('an answer is JSON, text or empty, and a refusal says why', async () => {
  expect(await get('/json')).toEqual({ a: [1] });
  expect(await get('/text')).toBe('OK');
  expect(await get('/empty')).toBeNull();
  await expect(get('/refused')).rejects.toMatchObject({ name: 'EngineError', status: 409, message: 'in use' });
  await expect(get('/refused-text')).rejects.toMatchObject({ status: 500, message: 'broken' });
  await expect(get('/refused-empty')).rejects.toMatchObject({ status: 500, message: 'status 500' });
  await expect(engine.stream({ method: 'GET', path: '/refused' }, signal)).rejects.toMatchObject({ status: 409, message: 'in use' });
});

test('a question that Podman does not answer while it removes an image is asked again', async () => {
  removals = 3;
  expect(await get('/removing')).toEqual([]);
  removals = 100;
  await expect(get('/removing')).rejects.toMatchObject({ status: 500, message: expect.stringContaining('retrieving parent') });
  expect(removals).toBe(96);
  await expect(engine.request({ method: 'POST', path: '/removing' }, signal)).rejects.toMatchObject({ status: 500 });
  expect(removals).toBe(95);
});

test('an answer that does not end is cut, and one that stops is not waited for', async () => {
  await expect(get('/large')).rejects.toMatchObject({ name: 'EngineError', message: 'The answer of the engine is larger than 32 MiB.' });
  await expect(get('/slow', 100)).rejects.toMatchObject({
    code: 'engine_unavailable',
    message: expect.stringContaining('no answer in time'),
  });
  const stop = new AbortController();
  const stopped = engine.request({ method: 'GET', path: '/slow' }, stop.signal);
  stop.abort(new Error('stopped'));
  await expect(stopped).rejects.toThrow('stopped');
});

test('a name that would be another path is no image', async () => {
  asked.length = 0;
  for (const name of ['', 'a?x=1', '../containers', 'a/../../containers', 'a%2e', 'a b'])
    expect(await inspectImage(engine, name, signal)).toBeNull();
  expect(asked).toEqual([]);
});

test('an image that is pulled gets a tag of the installation, one that is there does not', async () => {
  asked.length = 0;
  const lines: string[] = [];
  const ensure = () => ensureTagged(engine, 'x', 'docker.io/library/a:1', ({ text }) => lines.push(text), signal);
  expect(await ensure()).toMatchObject({ Id: 'a1' });
  expect(lines).toEqual(['Pulling docker.io/library/a:1', 'Pulling']);
  expect(asked.filter((one) => one.startsWith('POST'))).toEqual([
    'POST /images/create?fromImage=docker.io%2Flibrary%2Fa&tag=1',
    'POST /images/sha256:a1/tag?repo=localhost%2Fpalestra%2Fx&tag=pulled-a1',
  ]);
  asked.length = 0;
  await ensure();
  expect(asked).toHaveLength(1);
});
