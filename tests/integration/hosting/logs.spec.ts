import { randomUUID } from 'node:crypto';
import type { HostingLogLine } from '@palestra/protocol';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { HostingLogs } from '../../../apps/api/src/environments/hosting/logs/hosting-logs.service.ts';
import { InstanceLogStore } from '../../../apps/api/src/environments/hosting/logs/instance-log-store.ts';
import { LogRetention } from '../../../apps/api/src/environments/hosting/logs/log-retention.ts';
import { EnvironmentSecrets, maskOf } from '../../../apps/api/src/environments/hosting/secrets/environment-secrets.ts';
import { SecretKeys } from '../../../apps/api/src/platform/secret-keys.ts';
import { openBlobStore } from '../../../apps/api/src/platform/storage.ts';
import { createLogger } from '../../../apps/api/src/platform/telemetry/logger.ts';
import { createOrganisation } from '../../support/organisation.ts';
import { startServer, type TestServer } from '../../support/server.ts';

const KEY = 'k'.repeat(40);
const SECRET = 'sk-a-secret-value';
let server: TestServer;
/** Of another process. */
let logs: HostingLogs;
let instances: InstanceLogStore;
let retention: LogRetention;
let environment: { id: string; owner: string; name: string; orgId: string; versionId: string };

beforeAll(async () => {
  // The job of the service would move old lines too.
  server = await startServer({ secretKey: KEY, jobs: 'off' });
  const { database, config } = server;
  logs = new HostingLogs(database, createLogger('silent'));
  const keys = new SecretKeys(KEY);
  instances = new InstanceLogStore(database, logs, new EnvironmentSecrets(database, { ...config, secretKey: KEY }, keys));
  const { blobs } = await openBlobStore(config, { url: '' }, keys, { alone: false });
  retention = new LogRetention({ handle: () => {} } as never, database, blobs);
});
afterAll(async () => {
  await logs.onApplicationShutdown();
  await server.close();
});

beforeEach(async () => {
  environment = await addEnvironment();
});

async function addEnvironment(): Promise<typeof environment> {
  const name = `logged-${randomUUID().slice(0, 8)}`;
  const { body } = await server.request('POST', '/v1/environments', { body: { name, description: '' } });
  const { pool } = server.database;
  const { rows } = await pool.query('SELECT org_id FROM environments WHERE id = $1', [body.id]);
  return { id: body.id, owner: body.owner, name, orgId: rows[0].org_id, versionId: await addVersion(body.id, 1) };
}

async function addVersion(environmentId: string, number: number): Promise<string> {
  const { rows } = await server.database.pool.query(
    `INSERT INTO environment_versions (environment_id, number, source_kind) VALUES ($1, $2, 'hosted') RETURNING id`,
    [environmentId, number],
  );
  return rows[0].id;
}

async function addDeploy(state = 'building'): Promise<string> {
  const { rows } = await server.database.pool.query(
    `INSERT INTO environment_deploys (environment_id, org_id, state, source, author) VALUES ($1, $2, $3, '{"kind":"folder"}', 'me') RETURNING id`,
    [environment.id, environment.orgId, state],
  );
  return rows[0].id;
}

const sinkOf = (deployId: string, secrets: Record<string, string> = {}) =>
  logs.sink({ sourceId: deployId, environmentId: environment.id, orgId: environment.orgId, versionId: null }, maskOf(secrets));

const line = (text: string, stream: 'stdout' | 'stderr' = 'stdout') => ({ at: new Date(), stream, text });
const instance = (id: string = randomUUID(), versionId = environment.versionId) => ({
  id,
  environmentId: environment.id,
  versionId,
  orgId: environment.orgId,
});

const linesIn = (text: string): HostingLogLine[] =>
  text
    .split('\n')
    .filter((one) => one !== '')
    .map((one) => JSON.parse(one) as HostingLogLine);

async function read(path: string, key = server.apiKey): Promise<HostingLogLine[]> {
  const answer = await fetch(server.url + path, { headers: { 'x-api-key': key } });
  expect(answer.status, path).toBe(200);
  expect(answer.headers.get('content-type')).toContain('application/x-ndjson');
  return linesIn(await answer.text());
}
const texts = async (path: string) => (await read(path)).map(({ text }) => text);
const runtime = (query = '') => `/v1/environments/${environment.owner}/${environment.name}/logs${query}`;

describe('the log of a deploy', () => {
  test('has streams and severities, and no secrets', async () => {
    const id = await addDeploy();
    const sink = sinkOf(id, { API_KEY: SECRET });
    sink.note('Cloning.');
    sink.write(line(`\u001b[31mERROR\u001b[0m: bad key ${SECRET}\u0000`, 'stderr'));
    sink.write(line('Resolved 12 packages', 'stderr'));
    sink.write(line('warning: slow'));
    await logs.flush();
    const lines = await read(`/v1/deploys/${id}/logs`);
    expect(lines.map(({ stream, severity, text }) => [stream, severity, text])).toEqual([
      ['palestra', 'info', 'Cloning.'],
      ['stderr', 'error', 'ERROR: bad key [secret:API_KEY]'],
      ['stderr', 'info', 'Resolved 12 packages'],
      ['stdout', 'warning', 'warning: slow'],
    ]);
    expect(lines.every(({ source }) => source === id)).toBe(true);
    expect(await texts(`/v1/deploys/${id}/logs?severity=warning`)).toHaveLength(2);
    expect(await texts(`/v1/deploys/${id}/logs?q=PACKAGES`)).toEqual(['Resolved 12 packages']);
    expect(await texts(`/v1/deploys/${id}/logs?after=${lines[1]!.seq}&limit=1`)).toEqual(['Resolved 12 packages']);
    expect(await texts(`/v1/deploys/${id}/logs?tail=2`)).toEqual(['Resolved 12 packages', 'warning: slow']);
  });

  test('is followed to its end', async () => {
    const id = await addDeploy();
    const sink = sinkOf(id);
    sink.note('first');
    await logs.flush();
    const answer = await fetch(`${server.url}/v1/deploys/${id}/logs?follow=true`, { headers: { 'x-api-key': server.apiKey } });
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    const until = async (wanted: string) => {
      while (!text.includes(wanted)) {
        const { done, value } = await reader.read();
        if (done) throw new Error(`ended: ${text}`);
        text += value;
      }
    };
    await until('first');
    sink.write(line('second'));
    await until('second');
    sink.note('last');
    await logs.flush();
    await server.database.pool.query(`UPDATE environment_deploys SET state = 'ready', ended_at = now() WHERE id = $1`, [id]);
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      text += value;
    }
    expect(linesIn(text).map((one) => one.text)).toEqual(['first', 'second', 'last']);
  });

  test('is cut in a flood, with a line that says so', async () => {
    const id = await addDeploy();
    const sink = sinkOf(id);
    let stored = 0;
    for (let count = 0; count < 30_000; count += 1) if (sink.write(line('x'))) stored += 1;
    sink.end();
    await logs.flush();
    expect(stored).toBeGreaterThanOrEqual(20_000);
    expect(stored).toBeLessThan(30_000);
    // More than one if the loop took longer than the pause between two of them.
    const notes = await read(`/v1/deploys/${id}/logs?q=dropped&limit=100`);
    for (const note of notes) expect(note).toMatchObject({ stream: 'palestra', severity: 'warning' });
    const dropped = notes.map(({ text }) => Number(/^(\d+) lines were dropped/.exec(text)![1]));
    expect(dropped.reduce((sum, count) => sum + count, 0)).toBe(30_000 - stored);
  });
});

describe('the log of instances', () => {
  test('is read by version and instance, and has no lines of builds', async () => {
    const second = await addVersion(environment.id, 2);
    const [one, two] = [instance(), instance(undefined, second)];
    await instances.append(one, [line('one'), line('Traceback (most recent call last):', 'stderr'), line('  File "x"', 'stderr')]);
    await instances.append(two, [line('two', 'stderr')]);
    sinkOf(await addDeploy()).note('a build');
    await logs.flush();
    const all = await read(runtime());
    expect(all.map(({ text, severity }) => `${severity} ${text}`)).toEqual([
      'info one',
      'error Traceback (most recent call last):',
      'error   File "x"',
      'warning two',
    ]);
    expect(await texts(runtime('?version=2'))).toEqual(['two']);
    expect(await texts(runtime(`?instance=${one.id}&severity=error`))).toHaveLength(2);
    expect(await instances.lastAt(two.id)).toEqual(new Date(all[3]!.at));
    expect(await instances.lastAt(randomUUID())).toBeNull();
    const missing = await server.request('GET', runtime('?version=9'));
    expect(missing).toMatchObject({ status: 404, body: { code: 'deployment_not_found' } });
  });

  test('has no secrets of the environment', async () => {
    await server.request('PUT', `/v1/environments/${environment.owner}/${environment.name}/secrets/API_KEY`, { body: { value: SECRET } });
    await instances.append(instance(), [line(`key=${SECRET}`)]);
    expect(await texts(runtime())).toEqual(['key=[secret:API_KEY]']);
  });

  test('a deleted environment takes its lines along', async () => {
    await instances.append(instance(), [line('one')]);
    await server.request('DELETE', `/v1/environments/${environment.owner}/${environment.name}`);
    await instances.append(instance(), [line('after its end')]);
    const { rows } = await server.database.pool.query('SELECT FROM hosting_logs WHERE environment_id = $1', [environment.id]);
    expect(rows).toEqual([]);
  });
});

describe('old lines', () => {
  const { signal } = new AbortController();
  const limits = { databaseDays: 7, databaseLines: 100_000, archiveDays: 90 };
  const inDatabase = async () => {
    const { rows } = await server.database.pool.query('SELECT text FROM hosting_logs WHERE environment_id = $1 ORDER BY seq', [
      environment.id,
    ]);
    return rows.map(({ text }) => text as string);
  };
  const age = (days: number, text: string) =>
    server.database.pool.query(`UPDATE hosting_logs SET at = now() - $1 * interval '1 day' WHERE environment_id = $2 AND text = $3`, [
      days,
      environment.id,
      text,
    ]);

  test('of instances become objects, and are read by the same route', async () => {
    await addDeploy('ready');
    const one = instance();
    await instances.append(one, [line('ERROR: oldest'), line('old'), line('new')]);
    await age(30, 'ERROR: oldest');
    await age(8, 'old');
    // The second run deletes what the first one stored.
    for (const remaining of [['ERROR: oldest', 'old', 'new'], ['new']]) {
      await retention.sweep(limits, signal);
      expect(await inDatabase()).toEqual(remaining);
      expect(await texts(runtime())).toEqual(['ERROR: oldest', 'old', 'new']);
    }
    const [oldest] = await read(runtime());
    expect(await texts(runtime(`?after=${oldest!.seq}`))).toEqual(['old', 'new']);
    expect(await texts(runtime('?limit=1'))).toEqual(['ERROR: oldest']);
    expect(await texts(runtime('?tail=2'))).toEqual(['old', 'new']);
    expect(await texts(runtime(`?severity=error&instance=${one.id}`))).toEqual(['ERROR: oldest']);
    expect(await texts(runtime(`?instance=${randomUUID()}`))).toEqual([]);
    await retention.sweep({ ...limits, archiveDays: 7 }, signal);
    expect(await texts(runtime())).toEqual(['new']);
  });

  test('of instances that write much leave the database early', async () => {
    await addDeploy('ready');
    await instances.append(
      instance(),
      ['a', 'b', 'c', 'd'].map((text) => line(text)),
    );
    for (let run = 0; run < 2; run += 1) await retention.sweep({ ...limits, databaseLines: 2 }, signal);
    expect(await inDatabase()).toEqual(['c', 'd']);
    expect(await texts(runtime())).toEqual(['a', 'b', 'c', 'd']);
  });

  test('of builds become objects, then end', async () => {
    const id = await addDeploy('ready');
    sinkOf(id).note('built');
    await logs.flush();
    const ended = (days: number) =>
      server.database.pool.query(`UPDATE environment_deploys SET ended_at = now() - $1 * interval '1 day' WHERE id = $2`, [days, id]);
    await ended(8);
    for (const remaining of [['built'], []]) {
      await retention.sweep(limits, signal);
      expect(await inDatabase()).toEqual(remaining);
      expect(await texts(`/v1/deploys/${id}/logs`)).toEqual(['built']);
    }
    await ended(91);
    await retention.sweep(limits, signal);
    expect(await texts(`/v1/deploys/${id}/logs`)).toEqual([]);
  });
});

test('an environment whose old lines cannot be moved keeps no other', async () => {
  const { pool } = server.database;
  const two = [environment, await addEnvironment()].toSorted((a, b) => (a.id < b.id ? -1 : 1));
  for (environment of two) {
    await addDeploy('ready');
    await instances.append(instance(), [line('old')]);
  }
  const ids = two.map(({ id }) => id);
  await pool.query(`UPDATE hosting_logs SET at = now() - interval '8 days' WHERE environment_id = ANY($1)`, [ids]);
  await pool.query(
    `CREATE FUNCTION fail_here() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = '57014'; END $$`,
  );
  await pool.query(
    `CREATE TRIGGER fail BEFORE DELETE ON hosting_logs FOR EACH ROW WHEN (OLD.environment_id = '${ids[0]}') EXECUTE FUNCTION fail_here()`,
  );
  const limits = { databaseDays: 7, databaseLines: 100_000, archiveDays: 90 };
  const { signal } = new AbortController();
  try {
    await retention.sweep(limits, signal);
    await expect(retention.sweep(limits, signal)).rejects.toMatchObject({ code: '57014' });
  } finally {
    await pool.query('DROP FUNCTION fail_here CASCADE');
  }
  const { rows } = await pool.query('SELECT environment_id AS id FROM hosting_logs WHERE environment_id = ANY($1)', [ids]);
  expect(rows).toEqual([{ id: ids[0] }]);
});

test('another organisation reads no log', async () => {
  const id = await addDeploy();
  const { apiKey } = await createOrganisation(server.url, server.apiKey);
  const headers = { 'x-api-key': apiKey };
  expect(await server.request('GET', `/v1/deploys/${id}/logs`, { headers })).toMatchObject({
    status: 404,
    body: { code: 'deploy_not_found' },
  });
  expect(await server.request('GET', runtime(), { headers })).toMatchObject({ status: 404, body: { code: 'environment_not_found' } });
});
