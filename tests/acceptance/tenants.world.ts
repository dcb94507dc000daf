import { randomUUID } from 'node:crypto';
import { defineEnvironment, type RunningServer, serve, tool } from '@palestra/environment-kit';
import pg from 'pg';
import type { Palestra } from '../support/palestra.ts';

const SCOPES = ['sessions', 'environments', 'rollouts', 'keys'] as const;
export type Scope = (typeof SCOPES)[number];

/** What one organisation has. */
export interface Belongings {
  /** In every description, name, task, prompt, result and file of it; no request says it. */
  canary: string;
  owner: string;
  name: string;
  environmentId: string;
  sid: string;
  /** Of a session that is played by texts. */
  textId: string;
  taskId: string;
  runId: string;
  rolloutId: string;
  keyId: string;
  exportId: string;
  queueId: string;
  /** Of an environment that is deployed. */
  deployId: string;
  file: string;
  /** Of all that is above: what must not stand in an answer to another, unless the request itself said it. */
  marks: Record<string, string>;
}

export interface Tenants {
  first: Belongings;
  /** Of another organisation, with every scope. */
  foreignKey: string;
  /** An environment of that organisation, on a server of its own. */
  foreignEnvironment: string;
  revokedKey: string;
  /** Of the first organisation, with every scope but this one. */
  without(scope: Scope): string;
  close(): Promise<void>;
}

const told = (canary: string) =>
  defineEnvironment({
    name: 'told',
    description: canary,
    splits: ['train'],
    tasks: () => [{ secret: canary }],
    prompt: () => canary,
    tools: { tell: tool({ description: canary, run: () => canary }) },
  });

/** A first organisation that has one of everything, and a second one that is after it. */
export async function settle(palestra: Palestra): Promise<Tenants> {
  const canary = `canary-${randomUUID()}`;
  const [own, foreign] = await Promise.all([serve([told(canary)]), serve([told('nothing of interest')])]);
  const foreignKey = await secondOrganisation(palestra);
  const keys = new Map<Scope, string>();
  for (const scope of SCOPES)
    keys.set(
      scope,
      (
        await newKey(
          palestra,
          `without ${scope}`,
          SCOPES.filter((other) => other !== scope),
        )
      ).key,
    );
  const revoked = await newKey(palestra, 'revoked', [...SCOPES]);
  await asked(palestra, 'DELETE', `/v1/keys/${revoked.id}`);
  const theirs = (name: string, isPrivate: boolean) =>
    asked(palestra, 'POST', '/v1/environments', {
      body: { name, description: '', isPrivate, source: { kind: 'remote', url: foreign.url } },
      headers: { 'x-api-key': foreignKey },
    });
  await Promise.all([theirs('theirs', true), theirs('shared', false)]);
  const first = await acquire(palestra, own, canary);
  // Its owner sees that the slot is taken, and not by which session, key or run.
  const guest = await reserve(palestra, 'other/shared');
  const headers = { 'x-session-id': guest, 'x-deployment': 'other/shared', 'x-palestra-run': `guest-${canary}` };
  await asked(palestra, 'POST', '/create', { headers, body: { split: 'train', index: 0 } });
  return {
    first: { ...first, marks: { ...first.marks, guest } },
    foreignKey,
    foreignEnvironment: 'other/theirs',
    revokedKey: revoked.key,
    without: (scope) => keys.get(scope)!,
    close: async () => void (await Promise.all([own.close(), foreign.close()])),
  };
}

interface Ask {
  body?: unknown;
  headers?: Record<string, string>;
}

export async function asked(palestra: Palestra, method: string, path: string, options: Ask = {}): Promise<any> {
  const { body, headers } = options;
  const answer = await fetch(palestra.url + path, {
    method,
    headers: { 'x-api-key': palestra.apiKey, ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    body: body === undefined ? null : JSON.stringify(body),
  });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return answer.headers.get('content-type')?.includes('json') ? JSON.parse(text) : text;
}

const newKey = (palestra: Palestra, name: string, scopes: string[]): Promise<{ id: string; key: string }> =>
  asked(palestra, 'POST', '/v1/keys', { body: { name, scopes } });

/** The id of a new session. */
async function reserve(palestra: Palestra, deployment: string): Promise<string> {
  const stream = String(await asked(palestra, 'POST', '/create_session', { headers: { 'x-deployment': deployment }, body: {} }));
  return /event: task_id\r?\ndata: (\S+)/.exec(stream)![1]!;
}

/** There is no route that founds organisations. */
async function secondOrganisation(palestra: Palestra): Promise<string> {
  const key = `or_${randomUUID()}`;
  const client = new pg.Client({ connectionString: palestra.databaseUrl! });
  await client.connect();
  await client.query(
    `WITH org AS (INSERT INTO organisations (name) VALUES ('other') RETURNING id),
       person AS (INSERT INTO users (name) VALUES ('other-user') RETURNING id),
       member AS (INSERT INTO memberships (org_id, user_id) SELECT org.id, person.id FROM org, person)
     INSERT INTO api_keys (org_id, user_id, name, prefix, hash, scopes)
     SELECT org.id, person.id, 'theirs', 'or_', sha256($1::bytea), $2 FROM org, person`,
    [Buffer.from(key), SCOPES],
  );
  await client.end();
  return key;
}

/** Deploys a running server as another environment. */
async function deployOf(palestra: Palestra, name: string, url: string): Promise<string> {
  const body = { source: { kind: 'url', urls: [url] }, create: true };
  const answer = await fetch(`${palestra.url}/v1/environments/${palestra.namespace}/${name}/deploys`, {
    method: 'POST',
    headers: { 'x-api-key': palestra.apiKey, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (answer.status !== 202) throw new Error(`${answer.status} ${await answer.text()}`);
  return ((await answer.json()) as { id: string }).id;
}

async function acquire(palestra: Palestra, upstream: RunningServer, canary: string): Promise<Belongings> {
  const [owner, name] = [palestra.namespace, `private-${randomUUID()}`];
  const source = { kind: 'remote', url: upstream.url };
  const environment = await asked(palestra, 'POST', '/v1/environments', { body: { name, description: canary, isPrivate: true, source } });
  const { key: _, ...key } = await newKey(palestra, canary, ['rollouts']);

  const sid = await reserve(palestra, `${owner}/${name}`);
  const headers = { 'x-session-id': sid, 'x-deployment': `${owner}/${name}`, 'x-palestra-run': `recorded-${canary}` };
  await asked(palestra, 'POST', '/create', { headers, body: { split: 'train', index: 0 } });
  const stream = String(await asked(palestra, 'POST', '/call', { headers, body: { name: 'tell', input: {} } }));
  const taskId = /event: task_id\r?\ndata: (\S+)/.exec(stream)![1]!;

  const task = { environment: `${owner}/${name}`, split: 'train', index: 0 };
  const { id: textId } = await asked(palestra, 'POST', '/v1/text-sessions', { body: task });

  const rolloutId = randomUUID();
  const timestamp = Date.now();
  const started = { eventType: 'rollout', eventId: rolloutId, timestamp, runName: `run-${canary}`, rolloutName: canary };
  const message = { eventType: 'message', eventId: randomUUID(), rolloutEventId: rolloutId, timestamp, index: 0 };
  const said = { ...message, type: 'assistant_message', content: canary, isFinished: false, metadata: {} };
  await asked(palestra, 'POST', '/v1/rollouts', { body: { events: [started, said] } });
  const { runs } = await asked(palestra, 'GET', `/v1/runs?name=run-${canary}`);

  const { id: queueId } = await asked(palestra, 'POST', '/v1/review-queues', { body: { name: canary, run: runs[0].id } });

  const wanted = { environments: [`${owner}/${name}`], split: 'train', max_tasks: 1, format: 'jsonl', prompt_format: 'text' };
  const { id: exportId } = await asked(palestra, 'POST', '/v1/exports/tasks', { body: wanted });
  for (;;) {
    const { state } = await asked(palestra, 'GET', `/v1/exports/${exportId}`);
    if (state === 'complete') break;
    if (state !== 'running') throw new Error(`the export is ${state}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }

  const file = `${canary}.txt`;
  const { urls } = await asked(palestra, 'POST', '/v1/files/upload-urls', {
    body: { environmentId: environment.id, files: [{ fileName: file, contentType: 'text/plain' }] },
  });
  await fetch(urls[0].uploadUrl, { method: 'PUT', body: canary, headers: { 'content-type': 'text/plain' } });
  const deployId = await deployOf(palestra, `deployed-${randomUUID().slice(0, 8)}`, upstream.url);
  const ids = {
    environmentId: environment.id,
    sid,
    textId,
    taskId,
    runId: runs[0].id,
    rolloutId,
    keyId: key.id,
    exportId,
    queueId,
    deployId,
  };
  return { canary, owner, name, ...ids, file, marks: { canary, name, ...ids, apiKey: palestra.apiKey } };
}
