import { readFileSync } from 'node:fs';
import pg from 'pg';
import { SseParser } from '@palestra/kit/sse';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { engineCommand, TestEngine } from '../integration/hosting/docker-engine.world.ts';
import { machineAddress, startEcho } from '../integration/sandboxes/sandboxes.world.ts';
import { type Palestra, startPalestra } from '../support/palestra.ts';
import { makeShellImage } from '../support/shell-image.ts';
import { clientEnv } from './support/client-env.ts';
import { recording } from './support/python.ts';
import { expectSandboxTour } from './support/sandbox-tour.ts';

/** Sandboxes with the unmodified client of openreward 0.1.167, on a real engine. */
describe.skipIf(engineCommand === undefined)('the sandbox client', () => {
  let engine: TestEngine;
  let image: string;
  let palestra: Palestra;
  let echo: Awaited<ReturnType<typeof startEcho>>;
  let deployment: string;
  let installation: string;

  beforeAll(async () => {
    [engine, echo] = await Promise.all([TestEngine.start(), startEcho()]);
    image = makeShellImage(engineCommand!);
    palestra = await startPalestra({
      env: {
        PALESTRA_BUNDLED_ENVIRONMENTS: '1',
        PALESTRA_HOSTING: 'docker',
        PALESTRA_DOCKER_HOST: `unix://${engine.socket}`,
        PALESTRA_BASE_IMAGE_NODE: engine.image,
        PALESTRA_SANDBOX_HTTP_HOSTS: machineAddress(),
      },
    });
    const body = JSON.stringify({
      name: 'shell',
      namespace: palestra.namespace,
      description: '',
      source: { kind: 'bundled', name: 'echo' },
    });
    const made = await request('/v1/environments', { method: 'POST', body });
    if (!made.ok) throw new Error(await made.text());
    deployment = `${palestra.namespace}/shell`;
    await uploadToBucket('public/task.txt', 'of the bucket\n');
    await uploadToBucket('hidden/answer.txt', '42');
    const database = new pg.Client({ connectionString: palestra.databaseUrl! });
    await database.connect();
    await database.query('INSERT INTO hosting_installation DEFAULT VALUES ON CONFLICT DO NOTHING');
    installation = (await database.query<{ id: string }>('SELECT id FROM hosting_installation')).rows[0]!.id;
    await database.end();
  });
  afterAll(async () => {
    await palestra?.stop();
    echo?.close();
    if (installation !== undefined) {
      for (const name of leftovers()) engine.ask('rm', '-f', '-t', '0', name);
      const filter = ['--filter', `label=palestra.dev/installation=${installation}`];
      for (const name of engine.lines('network', 'ls', ...filter, '--format', '{{.Name}}')) engine.ask('network', 'rm', '-f', name);
    }
    await engine?.close();
    engine?.ask('rmi', '-f', image);
  });

  const leftovers = () => engine.lines('ps', '-a', '--filter', `label=palestra.dev/installation=${installation}`, '--format', '{{.Names}}');
  const request = (url: string, init: RequestInit & { headers?: Record<string, string> }) =>
    fetch(palestra.url + url, { ...init, headers: { 'x-api-key': palestra.apiKey, 'content-type': 'application/json', ...init.headers } });

  async function uploadToBucket(fileName: string, text: string): Promise<void> {
    const found = (await (await request(`/v1/environments/${deployment}`, {})).json()) as { id: string };
    const body = JSON.stringify({ environmentId: found.id, files: [{ fileName, contentType: 'text/plain' }] });
    const answer = await request('/v1/files/upload-urls', { method: 'POST', body });
    const { urls } = (await answer.json()) as { urls: { uploadUrl: string }[] };
    const put = await fetch(urls[0]!.uploadUrl, { method: 'PUT', body: text, headers: { 'content-type': 'text/plain' } });
    if (!put.ok) throw new Error(`the upload failed: ${put.status} ${await put.text()}`);
  }

  test('runs commands, moves files, keeps its network rules, and leaves nothing behind', async () => {
    await expectSandboxTour([deployment, image, echo.url], clientEnv(palestra));
    await expect.poll(leftovers).toEqual([]);
  });

  test('answers the recorded requests in the recorded form', async () => {
    const lines = readFileSync(recording('sandbox-client-0.1.167'), 'utf8').trim().split('\n');
    const recorded = lines.map((line) => JSON.parse(line) as { path: string; status: number; body: string; response: string });
    const settings = { environment: deployment, image, machine_size: '0.5:1', block_network: true };
    const opened = new SseParser().push(
      await (await request('/create_sandbox', { method: 'POST', body: JSON.stringify(settings) })).text(),
    );
    expect(opened.map(({ event }) => event)).toEqual(['task_id', 'end']);
    const headers = { 'x-session-id': opened[0]!.data };
    const kept = recorded.filter(
      ({ path: url, response }) => url !== '/create_sandbox' && url !== '/set_network' && !response.includes('unknown task_id'),
    );
    for (const { path: url, status, body, response } of kept) {
      const type = url.startsWith('/write_file') ? 'application/octet-stream' : 'application/json';
      const sent = body === '' ? {} : { body };
      const answer = await request(url, { method: 'POST', ...sent, headers: { ...headers, 'content-type': type } });
      const text = await answer.text();
      expect([url, answer.status]).toEqual([url, status]);
      if (url === '/delete_session') break;
      if (url === '/run') expect(lastEvent(text)).toEqual(lastEvent(response));
      else if (status === 200 && response.startsWith('{')) expect(JSON.parse(text)).toEqual(JSON.parse(response));
      else if (status === 200) expect(text).toBe(response);
      else expect((JSON.parse(text) as { detail: string }).detail).toBe((JSON.parse(response) as { error: string }).error);
    }
    await expect.poll(leftovers).toEqual([]);
  });

  test('a command that ran when the service was killed does not run again, and its sandbox is removed', async () => {
    const settings = { environment: deployment, image, machine_size: '0.5:0.5', block_network: true };
    const opened = await (await request('/create_sandbox', { method: 'POST', body: JSON.stringify(settings) })).text();
    const headers = { 'x-session-id': new SseParser().push(opened)[0]!.data };
    const body = { cmd: 'echo x >> /tmp/runs; sleep 60', timeout_s: 100, max_bytes: 100, shell: '/bin/bash' };
    const running = await request('/run', { method: 'POST', body: JSON.stringify(body), headers });
    const { value } = await running.body!.getReader().read();
    const taskId = new SseParser().push(Buffer.from(value!).toString())[0]!.data;
    await palestra.kill();
    await palestra.restart();
    const resumed = await request('/run', { method: 'POST', body: JSON.stringify({ ...body, task_id: taskId }), headers });
    expect(lastEvent(await resumed.text())).toMatchObject({ event: 'error', data: expect.stringContaining('Session lost') });
    await expect.poll(leftovers).toEqual([]);
    expect((await request('/ping', { method: 'POST', headers })).status).toBe(410);
  });
});

/** The last event of a stream; JSON is parsed. */
function lastEvent(text: string): { event: string; data: unknown } {
  const all = new SseParser().push(text);
  const event = all.at(-1)!.event;
  const data = all.filter((one) => one.event === event || one.event === 'chunk').map((one) => one.data);
  return { event, data: event === 'end' ? JSON.parse(data.join('') || 'null') : data.join('') };
}
