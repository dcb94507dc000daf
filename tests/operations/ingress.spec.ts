import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { PalestraClient } from '@palestra/client';
import { defineEnvironment, type RunningServer, serve, tool, z } from '@palestra/environment-kit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { Client } from '../integration/protocols/openenv.world.ts';
import { type Palestra, startPalestra } from '../support/palestra.ts';
import { root } from './images.ts';
import { type Nginx, startNginx } from './nginx.ts';

/**
 * The Ingress of the chart in nginx: one server with the annotations of values.yaml, one without. What ingress-nginx cuts after 60 seconds
 * without annotations is cut here after `CUT_S`, so that the tests are quick. At 60 seconds the heartbeats of the service, each 10 seconds in
 * streams and sockets, keep a connection open; at `CUT_S` they come too late.
 */
const CUT_S = 4;
const QUIET_MS = 7_000;

const slow = defineEnvironment({
  name: 'slow',
  splits: ['train'],
  tasks: () => [{ id: 0 }],
  prompt: () => 'Wait.',
  tools: {
    wait: tool({
      description: 'Answers after a time.',
      input: z.object({ ms: z.int() }),
      run: async ({ ms }) => {
        await sleep(ms);
        return { content: 'waited', reward: 1 };
      },
    }),
  },
});

let upstream: RunningServer;
let palestra: Palestra;
let nginx: Nginx;
let environment: string;
/** URLs of the two. */
let annotated: string;
let plain: string;

beforeAll(async () => {
  const { ingress } = parse(await readFile(path.join(root, 'deploy/helm/palestra/values.yaml'), 'utf8'));
  [upstream, palestra] = await Promise.all([serve([slow]), startPalestra({ env: { PALESTRA_ALLOW_PRIVATE_UPSTREAMS: '1' } })]);
  nginx = await startNginx(palestra.url, [ingress.annotations, {}], CUT_S);
  [annotated, plain] = nginx.urls as [string, string];
  environment = `${palestra.namespace}/slow`;
  await post('/v1/environments', { name: 'slow', isPrivate: true, source: { kind: 'remote', url: upstream.url } });
});
afterAll(async () => {
  await nginx?.close();
  await palestra?.stop();
  await upstream?.close();
});

async function post(route: string, body: object): Promise<any> {
  const headers = { 'content-type': 'application/json', 'x-api-key': palestra.apiKey };
  const answer = await fetch(palestra.url + route, { method: 'POST', headers, body: JSON.stringify(body) });
  expect(answer.status).toBe(200);
  return answer.json();
}

/** The event stream of a call of `wait`, and the time from its first to its last bytes. Rejects if the stream breaks off. */
async function streamCall(url: string): Promise<{ text: string; tookMs: number }> {
  const client = new PalestraClient({ url: palestra.url, apiKey: palestra.apiKey });
  await using session = await client.session({ environment, split: 'train', index: 0 });
  const answer = await fetch(`${url}/call`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-api-key': palestra.apiKey,
      'x-deployment': environment,
      'x-session-id': session.sid,
    },
    body: JSON.stringify({ name: 'wait', input: { ms: QUIET_MS } }),
  });
  expect(answer.status).toBe(200);
  let firstAt = 0;
  let text = '';
  for await (const piece of answer.body!) {
    firstAt ||= performance.now();
    text += Buffer.from(piece).toString();
  }
  return { text, tookMs: performance.now() - firstAt };
}

test('the event stream of a long call arrives as it is written, and is not cut', async () => {
  const [whole, cut] = await Promise.allSettled([streamCall(annotated), streamCall(plain)]);
  expect(whole).toMatchObject({ status: 'fulfilled', value: { text: expect.stringMatching(/^event: task_id[\s\S]*waited[\s\S]*$/) } });
  expect((whole as PromiseFulfilledResult<{ tookMs: number }>).value.tookMs).toBeGreaterThan(QUIET_MS / 5);
  expect(cut).toMatchObject({ status: 'rejected', reason: { message: 'terminated' } });
});

test('an OpenEnv session over a WebSocket goes on after a pause', async () => {
  const play = async (url: string): Promise<unknown> => {
    const socket = await Client.open(`${url}/openenv/${environment}/ws`, { 'x-api-key': palestra.apiKey });
    try {
      await socket.reset();
      await sleep(QUIET_MS);
      return socket.closed ?? (await socket.call('wait', { ms: 1 }));
    } finally {
      await socket.close();
    }
  };
  const [whole, cut] = await Promise.all([play(annotated), play(plain)]);
  expect(JSON.stringify(whole)).toContain('waited');
  expect(cut).toMatchObject({ code: 1006 });
});

test('an upload of three megabytes is accepted', async () => {
  const { id } = await post('/v1/environments', { name: 'with-files', isPrivate: true });
  const upload = async (url: string): Promise<number> => {
    const { urls } = await post('/v1/files/upload-urls', {
      environmentId: id,
      files: [{ fileName: 'large.txt', contentType: 'text/plain' }],
    });
    const { pathname, search } = new URL(urls[0].uploadUrl);
    const headers = { 'content-type': 'text/plain' };
    const answer = await fetch(url + pathname + search, { method: 'PUT', headers, body: Buffer.alloc(3 * 2 ** 20, 'a') });
    await answer.body?.cancel();
    return answer.status;
  };
  expect([await upload(annotated), await upload(plain)]).toEqual([200, 413]);
});
