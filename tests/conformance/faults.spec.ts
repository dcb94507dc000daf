import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Palestra, type SharedPalestra, sharedPalestra, startPalestra } from '../support/palestra.ts';

/** Refusals that need a machine of their own: a full disk, and a second tenant. */
interface Refusal {
  statusCode: number;
  code: string;
  detail: string;
}

async function ask(palestra: SharedPalestra, method: string, route: string, body?: unknown, key = palestra.apiKey): Promise<Response> {
  return fetch(`${palestra.url}${route}`, {
    method,
    headers: { 'x-api-key': key, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    body: body === undefined ? null : JSON.stringify(body),
  });
}

describe('a full disk under the object store', () => {
  const dataDir = mkdtempSync(path.join(tmpdir(), 'palestra-full-disk-'));
  const blobs = path.join(dataDir, 'blobs');
  let palestra: Palestra;
  let environmentId: string;

  beforeAll(async () => {
    chmodSync(dataDir, 0o755);
    mkdirSync(blobs);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'palestra-test', blobs]);
    palestra = await startPalestra({ dataDir });
    const created = await ask(palestra, 'POST', '/v1/environments', {
      name: 'disk',
      namespace: palestra.namespace,
      description: '',
      isPrivate: true,
    });
    environmentId = ((await created.json()) as { id: string }).id;
  });
  afterAll(async () => {
    await palestra?.stop();
    execFileSync('umount', [blobs]);
    rmSync(dataDir, { recursive: true, force: true });
  });

  async function upload(fileName: string, bytes: number): Promise<Response> {
    const asked = await ask(palestra, 'POST', '/v1/files/upload-urls', { environmentId, files: [{ fileName, contentType: 'text/plain' }] });
    const { urls } = (await asked.json()) as { urls: { uploadUrl: string }[] };
    return fetch(urls[0]!.uploadUrl, { method: 'PUT', headers: { 'content-type': 'text/plain' }, body: 'x'.repeat(bytes) });
  }
  async function listed(): Promise<{ path: string; size: number }[]> {
    const answer = await ask(palestra, 'GET', `/v1/files/${environmentId}`);
    return ((await answer.json()) as { files: { path: string; size: number }[] }).files;
  }

  test('refuses the upload, keeps what it has, and takes the next one that fits', async () => {
    expect((await upload('small.txt', 1_000)).status).toBe(200);
    const refused = await upload('large.txt', 1_000_000);
    expect(refused.status).toBe(503);
    expect(await refused.json()).toMatchObject({ code: 'storage_full', detail: 'The disk is full. Nothing was stored.' });
    expect((await listed()).map(({ path: file }) => file)).toEqual(['small.txt']);
    expect((await upload('next.txt', 2_000)).status).toBe(200);
    expect((await listed()).map(({ path: file, size }) => `${file} ${size}`)).toEqual(['next.txt 2000', 'small.txt 1000']);
  });
});

describe('another tenant', () => {
  let palestra: SharedPalestra;
  let strangersKey: string;

  beforeAll(async () => {
    palestra = await sharedPalestra();
    strangersKey = (await sharedPalestra()).apiKey;
    await ask(palestra, 'POST', '/v1/environments', {
      name: 'hidden',
      namespace: palestra.namespace,
      description: 'private',
      isPrivate: true,
      source: { kind: 'remote', url: palestra.url },
    });
    await ask(palestra, 'POST', '/v1/rollouts', {
      events: [{ eventType: 'rollout', eventId: crypto.randomUUID(), timestamp: Date.now(), runName: 'secret-run' }],
    });
  });

  async function refusal(method: string, route: string, body?: unknown): Promise<Refusal> {
    return (await (await ask(palestra, method, route, body, strangersKey)).json()) as Refusal;
  }

  test('cannot tell a private environment from one that does not exist', async () => {
    const name = `${palestra.namespace}/hidden`;
    const hidden = await refusal('GET', `/v1/environments/${name}`);
    expect(hidden).toMatchObject({ statusCode: 404, code: 'environment_not_found' });
    expect(hidden).toEqual(await refusal('GET', '/v1/environments/nobody/nothing'));
    const session = await fetch(`${palestra.url}/create_session`, {
      method: 'POST',
      headers: { 'x-api-key': strangersKey, 'x-deployment': name, 'content-type': 'application/json' },
      body: '{}',
    });
    expect(session.status).toBe(404);
    expect(await session.json()).toMatchObject({ code: 'deployment_not_found' });
    const listed = (await (await ask(palestra, 'GET', '/v1/environments', undefined, strangersKey)).json()) as {
      environments: { name: string }[];
    };
    expect(listed.environments.map((environment) => environment.name)).not.toContain('hidden');
    expect(listed.environments.map((environment) => environment.name)).toContain('whodunit');
    expect(await refusal('PUT', `/v1/environments/${name}/details`, { new_is_private: false })).toMatchObject({
      code: 'environment_not_found',
    });
  });

  test('sees neither runs nor rollouts, and cannot use a session of somebody else', async () => {
    expect(await refusal('GET', '/v1/runs')).toMatchObject({ runs: [], total: 0 });
    const { runs } = (await (await ask(palestra, 'GET', '/v1/runs')).json()) as { runs: { id: string }[] };
    expect(await refusal('GET', `/v1/runs/${runs[0]!.id}`)).toMatchObject({ statusCode: 404, code: 'run_not_found' });

    const sid = crypto.randomUUID();
    const headers = { 'x-deployment': 'palestra/echo', 'x-session-id': sid, 'content-type': 'application/json' };
    const post = (route: string, key: string, body: string) =>
      fetch(`${palestra.url}${route}`, { method: 'POST', headers: { ...headers, 'x-api-key': key }, body });
    expect((await post('/create', palestra.apiKey, '{"split": "train", "index": 0}')).status).toBe(200);
    const stolen = await post('/call', strangersKey, '{"name": "echo", "input": {"text": "mine now"}}');
    expect(stolen.status).toBe(404);
    expect(await stolen.json()).toMatchObject({ code: 'session_not_found' });
    expect((await post('/ping', palestra.apiKey, '')).status).toBe(200);
  });
});
