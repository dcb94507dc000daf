import { randomUUID } from 'node:crypto';
import { defineEnvironment, type RunningServer, serve, tool } from '@palestra/environment-kit';
import type { TestServer } from '../support/server.ts';

const SCOPES = ['sessions', 'environments', 'rollouts', 'keys'] as const;
export type Scope = (typeof SCOPES)[number];

/** What one organisation has; every piece of it holds `canary`, which no request of another says. */
export interface Belongings {
  canary: string;
  owner: string;
  name: string;
  environmentId: string;
  sid: string;
  taskId: string;
  runId: string;
  rolloutId: string;
  keyId: string;
  exportId: string;
  file: string;
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
export async function settle(server: TestServer): Promise<Tenants> {
  const canary = `canary-${randomUUID()}`;
  const [own, foreign] = await Promise.all([serve([told(canary)]), serve([told('nothing of interest')])]);
  const foreignKey = await secondOrganisation(server);
  const keys = new Map<Scope, string>();
  for (const scope of SCOPES)
    keys.set(
      scope,
      (
        await newKey(
          server,
          `without ${scope}`,
          SCOPES.filter((other) => other !== scope),
        )
      ).key,
    );
  const revoked = await newKey(server, 'revoked', [...SCOPES]);
  await asked(server, 'DELETE', `/v1/keys/${revoked.id}`);
  const theirs = await asked(server, 'POST', '/v1/environments', {
    body: { name: 'theirs', description: '', isPrivate: true, source: { kind: 'remote', url: foreign.url } },
    headers: { 'x-api-key': foreignKey },
  });
  return {
    first: await acquire(server, own, canary),
    foreignKey,
    foreignEnvironment: `${theirs.owner ?? theirs.namespace ?? 'other'}/theirs`,
    revokedKey: revoked.key,
    without: (scope) => keys.get(scope)!,
    close: async () => void (await Promise.all([own.close(), foreign.close()])),
  };
}

interface Ask {
  body?: unknown;
  headers?: Record<string, string>;
}

async function asked(server: TestServer, method: string, path: string, options: Ask = {}): Promise<any> {
  const { status, body } = await server.request(method, path, options);
  if (status !== 200) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(body)}`);
  return body;
}

const newKey = (server: TestServer, name: string, scopes: string[]): Promise<{ id: string; key: string }> =>
  asked(server, 'POST', '/v1/keys', { body: { name, scopes } });

/** There is no route that founds organisations. */
async function secondOrganisation(server: TestServer): Promise<string> {
  const key = `or_${randomUUID()}`;
  const { pool } = server.database;
  const { rows: orgs } = await pool.query(`INSERT INTO organisations (name) VALUES ('other') RETURNING id`);
  const { rows: users } = await pool.query(`INSERT INTO users (name) VALUES ('other-user') RETURNING id`);
  await pool.query(`INSERT INTO memberships (org_id, user_id) VALUES ($1, $2)`, [orgs[0].id, users[0].id]);
  await pool.query(
    `INSERT INTO api_keys (org_id, user_id, name, prefix, hash, scopes) VALUES ($1, $2, 'theirs', 'or_', sha256($3::bytea), $4)`,
    [orgs[0].id, users[0].id, Buffer.from(key), SCOPES],
  );
  return key;
}

async function acquire(server: TestServer, upstream: RunningServer, canary: string): Promise<Belongings> {
  const [owner, name] = [server.orgName, 'private'];
  const source = { kind: 'remote', url: upstream.url };
  const environment = await asked(server, 'POST', '/v1/environments', { body: { name, description: canary, isPrivate: true, source } });
  const { key: _, ...key } = await newKey(server, canary, ['rollouts']);

  const sid = randomUUID();
  const headers = { 'x-session-id': sid, 'x-deployment': `${owner}/${name}` };
  await asked(server, 'POST', '/create', { headers, body: { split: 'train', index: 0 } });
  const stream = String(await asked(server, 'POST', '/call', { headers, body: { name: 'tell', input: {} } }));
  const taskId = /event: task_id\r?\ndata: (\S+)/.exec(stream)![1]!;

  const rolloutId = randomUUID();
  const timestamp = Date.now();
  const started = { eventType: 'rollout', eventId: rolloutId, timestamp, runName: `run-${canary}`, rolloutName: canary };
  const message = { eventType: 'message', eventId: randomUUID(), rolloutEventId: rolloutId, timestamp, index: 0 };
  const said = { ...message, type: 'assistant_message', content: canary, isFinished: false, metadata: {} };
  await asked(server, 'POST', '/v1/rollouts', { body: { events: [started, said] } });
  const { runs } = await asked(server, 'GET', '/v1/runs');

  const wanted = { environments: [`${owner}/${name}`], split: 'train', max_tasks: 1, format: 'jsonl', prompt_format: 'text' };
  const { id: exportId } = await asked(server, 'POST', '/v1/exports/tasks', { body: wanted });
  for (;;) {
    const { state } = await asked(server, 'GET', `/v1/exports/${exportId}`);
    if (state === 'complete') break;
    if (state !== 'running') throw new Error(`the export is ${state}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }

  const file = `${canary}.txt`;
  const { urls } = await asked(server, 'POST', '/v1/files/upload-urls', {
    body: { environmentId: environment.id, files: [{ fileName: file, contentType: 'text/plain' }] },
  });
  await fetch(urls[0].uploadUrl, { method: 'PUT', body: canary, headers: { 'content-type': 'text/plain' } });
  return { canary, owner, name, environmentId: environment.id, sid, taskId, runId: runs[0].id, rolloutId, keyId: key.id, exportId, file };
}
