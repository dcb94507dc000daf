import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { PalestraClient } from '@palestra/client';
import pg from 'pg';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { uploadRollout } from '../browser/upload.ts';
import { type MortalPostgres, startMortalPostgres } from '../support/mortal-postgres.ts';
import { type Palestra, startPalestra, testApiKey } from '../support/palestra.ts';
import { runtimeRole } from '../support/runtime-role.ts';
import { type S3Server, startS3 } from '../support/s3-server.ts';
import { root } from './images.ts';
import { postgresFolder } from './postgres-programs.ts';

/**
 * The commands of docs/operations.md, "Backup and restore": from one PostgreSQL and one object store into empty ones, with the same secret
 * key and nothing else of the first service.
 */
const RUN = 'kept';
const CLI = path.join(root, 'apps/cli/bin/palestra.cjs');
const run = promisify(execFile);
const WAIT = { timeout: 200_000, interval: 100 };
let folder: string;
let objects: S3Server;
let otherObjects: S3Server;
let otherPostgres: MortalPostgres;
let palestra: Palestra;
let restored: Palestra;
let sid: string;
let rollouts: string[];
let before: Record<string, unknown>;

/** Code blocks of a section of docs/operations.md. */
async function commands(heading: string): Promise<string[]> {
  const text = await readFile(path.join(root, 'docs/operations.md'), 'utf8');
  const section = text.split(`\n### ${heading}\n`)[1]!.split(/\n##+ /)[0]!;
  return [...section.matchAll(/```sh\n([^]*?)```/g)].map(([, code]) => code!);
}

/** Runs a block of the document as an operator does: in a folder, with the variables of the service. */
async function asOperator(code: string, database: string, { env }: S3Server): Promise<void> {
  const { runtime, migration } = runtimeRole(database);
  const { S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY, S3_REGION } = env;
  const programs = [path.join(postgresFolder(), 'bin'), path.dirname(required('PALESTRA_PYTHON_AWS')), path.join(folder, 'bin')];
  await run('sh', ['-ec', code], {
    cwd: folder,
    timeout: 60_000,
    env: {
      ...process.env,
      ...env,
      PATH: `${programs.join(':')}:${process.env['PATH']}`,
      DATABASE_URL: runtime,
      DATABASE_MIGRATION_URL: migration!,
      AWS_ACCESS_KEY_ID: S3_ACCESS_KEY_ID,
      AWS_SECRET_ACCESS_KEY: S3_SECRET_ACCESS_KEY,
      AWS_DEFAULT_REGION: S3_REGION,
    },
  });
}

function required(variable: string): string {
  const value = process.env[variable];
  if (!value) throw new Error(`${variable} is not set; .ci/run sets it`);
  return value;
}

const variables = (store: S3Server) => ({
  ...store.env,
  PALESTRA_SECRET_KEY: Buffer.alloc(32, 7).toString('base64'),
  PALESTRA_BUNDLED_ENVIRONMENTS: '1',
  PALESTRA_HOSTING: 'process',
  PALESTRA_ALLOW_COMMANDS: '1',
  PALESTRA_SEAL_FINISHED_S: '0',
});
const get = async ({ url }: Palestra, route: string): Promise<any> => {
  const answer = await fetch(url + route, { headers: { 'x-api-key': testApiKey } });
  if (!answer.ok) throw new Error(`GET ${route}: ${answer.status} ${await answer.text()}`);
  return answer.json();
};
const echo = async (service: Palestra, text: string): Promise<string> => {
  const client = new PalestraClient({ url: service.url, apiKey: testApiKey });
  const session = client.attach(sid);
  const { blocks } = await session.call('echo', { text });
  await client.close();
  return blocks.map((block) => ('text' in block ? block.text : '')).join('');
};

/** From the object store itself. */
async function download(url: string): Promise<string> {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`GET ${url}: ${answer.status}`);
  return answer.text();
}

/** What users read. */
async function view(service: Palestra): Promise<Record<string, unknown>> {
  const messages = await Promise.all(rollouts.map(async (id) => (await get(service, `/v1/rollouts/${id}`)).messages));
  const { exports } = await get(service, '/v1/exports');
  const [{ id }] = exports;
  const { files } = await get(service, `/v1/exports/${id}`);
  const { num_rollouts, num_scored, last_step } = await get(service, `/v1/runs/${RUN}`);
  return {
    messages,
    run: { num_rollouts, num_scored, last_step },
    found: (await get(service, `/v1/runs/${RUN}/search?q=needle`)).hits.length,
    exported: await download(files[0].url),
    versions: (await get(service, `/v1/environments/${service.namespace}/guess/versions`)).versions,
    environment: await get(service, `/v1/environments/${service.namespace}/guess`).then(({ name, versions }) => ({ name, versions })),
    calls: (await get(service, `/v1/sessions/${sid}/calls`)).calls.map(({ tool, input }: { tool: string; input: unknown }) => [
      tool,
      input,
    ]),
  };
}

async function sealed(): Promise<number> {
  const client = new pg.Client({ connectionString: palestra.databaseUrl! });
  await client.connect();
  const { rows } = await client.query<{ n: number }>('SELECT count(*)::int AS n FROM rollout_heads WHERE sealed_at IS NOT NULL');
  await client.end();
  return rows[0]!.n;
}

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'palestra-backup-'));
  [objects, otherObjects, otherPostgres] = await Promise.all([startS3(), startS3(), startMortalPostgres()]);
  palestra = await startPalestra({ env: variables(objects) });
  rollouts = await Promise.all(
    Array.from({ length: 12 }, (_, task) =>
      uploadRollout(palestra, {
        runName: RUN,
        task,
        step: task % 3,
        messages: [
          { type: 'user_message', content: `Question ${task}` },
          { type: 'assistant_message', content: task === 7 ? 'a needle' : 'hay', reward: task / 12, isFinished: true },
        ],
      }),
    ),
  );
  const client = new PalestraClient({ url: palestra.url, apiKey: testApiKey });
  ({ sid } = await client.sessions.open({
    environment: 'palestra/echo',
    split: 'train',
    index: 3,
    secrets: { TOKEN: 'sealed-by-the-key' },
  }));
  await client.close();
  await echo(palestra, 'before');
  const env = { ...process.env, PALESTRA_URL: palestra.url, PALESTRA_API_KEY: testApiKey };
  await run(process.execPath, [CLI, 'env', 'init', 'guess'], { cwd: folder, env });
  // The worker announces its engine shortly after its start.
  await vi.waitFor(() => run(process.execPath, [CLI, 'env', 'deploy'], { cwd: path.join(folder, 'guess'), env }), WAIT);
  await vi.waitUntil(async () => (await sealed()) === 12, WAIT);
  const answer = await fetch(`${palestra.url}/v1/exports`, {
    method: 'POST',
    headers: { 'x-api-key': testApiKey, 'content-type': 'application/json' },
    body: JSON.stringify({ run: RUN, format: 'jsonl' }),
  });
  const { id } = (await answer.json()) as { id: string };
  await vi.waitUntil(async () => (await get(palestra, `/v1/exports/${id}`)).state === 'complete', WAIT);
  before = await view(palestra);
  await mkdir(path.join(folder, 'bin'));
  await symlink(CLI, path.join(folder, 'bin/palestra'));
});
afterAll(async () => {
  await Promise.all([palestra?.stop(), restored?.stop()]);
  await Promise.all([objects?.stop(), otherObjects?.stop(), otherPostgres?.stop()]);
  await rm(folder, { recursive: true, force: true });
});

test('what the documented commands restore answers as before, and sessions go on', async () => {
  expect(before).toMatchObject({ run: { num_rollouts: 12, num_scored: 12, last_step: 2 }, found: 1 });
  for (const code of await commands('Backup')) await asOperator(code, palestra.databaseUrl!, objects);
  // The first service is lost, with its machine.
  await palestra.kill();
  await objects.kill();
  for (const code of await commands('Restore')) await asOperator(code, otherPostgres.url, otherObjects);
  restored = await startPalestra({ env: { ...variables(otherObjects), DATABASE_URL: otherPostgres.url } });
  expect(await view(restored)).toEqual(before);
  // With the secrets of its client, which only the same key opens.
  expect(await echo(restored, 'after')).toBe('after');
  const later = await uploadRollout(restored, {
    runName: RUN,
    messages: [{ type: 'assistant_message', content: 'later', isFinished: true }],
  });
  expect((await get(restored, `/v1/rollouts/${later}`)).messages).toHaveLength(1);
});
