import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Palestra, startPalestra } from '../../support/palestra.ts';
import {
  callTool,
  closeSession,
  eventually,
  openSession,
  overHttp,
  readEvents,
  type Service,
  startObserved,
  type World,
} from '../observed.world.ts';
import { openPool } from '../../../apps/api/src/platform/database/pool.ts';

/** Where the secrets of a session go: to its environment, and nowhere else. On the built service, whose logs are read, too. */

/** Long enough to be no accident, with characters that JSON escapes. */
const secret = `sk-"quoted"\\-${randomUUID()}`;
const xSecrets = Buffer.from(JSON.stringify({ TOKEN: { value: secret, allowed_domains: ['api.example.com'] } })).toString('base64');
/** Every form in which it could be written down. */
const traces = [
  secret,
  JSON.stringify(secret).slice(1, -1),
  secret.slice(-36),
  Buffer.from(secret).toString('base64').slice(0, -4),
  xSecrets,
];

let palestra: Palestra;
let service: Service;
let world: World;
let pool: pg.Pool;
let sid: string;
/** Everything that any client was answered. */
const answers: string[] = [];

beforeAll(async () => {
  palestra = await startPalestra({ env: { PALESTRA_LOG_LEVEL: 'debug' } });
  pool = openPool({ connectionString: palestra.databaseUrl!, max: 2 });
  service = overHttp(palestra, (answer) => answers.push(answer));
  world = await startObserved(service);
  sid = await openSession(service, world.environment, { 'x-secrets': xSecrets, 'x-palestra-run': 'secretive' });
});
afterAll(async () => {
  await pool?.end();
  await palestra?.stop();
  await world?.upstream.close();
});

/** Text of every row of every table; bytes as they are, one character each. */
async function everyRow(): Promise<string> {
  const tables = await pool.query<{ name: string }>(
    `SELECT quote_ident(table_name) AS name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`,
  );
  expect(tables.rows.length).toBeGreaterThan(10);
  const rows: string[] = [];
  for (const { name } of tables.rows) {
    const result = await pool.query<Record<string, unknown>>(`SELECT * FROM ${name}`);
    for (const row of result.rows) {
      for (const value of Object.values(row)) rows.push(Buffer.isBuffer(value) ? value.toString('latin1') : asText(value));
    }
  }
  return rows.join('\n');
}
const asText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** What stands around a secret; null when it is not there. */
function around(text: string, value: string): string | null {
  const at = text.indexOf(value);
  return at === -1 ? null : text.slice(Math.max(0, at - 200), at + value.length + 100);
}

function expectNoTrace(text: string): void {
  for (const trace of traces) expect(around(text, trace)).toBeNull();
}

const sealed = async () =>
  (await pool.query<{ secrets: Buffer | null }>('SELECT secrets FROM sessions WHERE sid = $1', [sid])).rows[0]!.secrets;

test('the column has a value that is not the secret', async () => {
  const box = await sealed();
  expect(box!.length).toBeGreaterThan(secret.length);
  expectNoTrace(box!.toString('latin1'));
  expectNoTrace(box!.toString('base64'));
});

test('the environment gets the secret, and results and errors mask it', async () => {
  expect((await callTool(service, sid, 'hear', { text: secret })).text).toContain('that is it');
  expect((await callTool(service, sid, 'tell')).text).toContain('the secret is [secret:TOKEN]');
  expect((await callTool(service, sid, 'raise')).text).toContain('it broke with [secret:TOKEN]');
  expectNoTrace(answers.join('\n'));
});

test('an error of the setup is masked, for the first request and all later ones', async () => {
  const broken = await openSession(service, world.environment, { 'x-secrets': xSecrets }, 1);
  const heard = [await callTool(service, broken, 'tell'), await callTool(service, broken, 'tell')];
  await closeSession(service, broken);
  for (const { text } of heard) {
    expect(text).toContain('setup cannot go on with [secret:TOKEN]');
    expectNoTrace(text);
  }
});

test('a prompt with the secret is masked', async () => {
  const { body } = await service.request('GET', '/prompt', { headers: { 'x-session-id': sid } });
  expect(asText(body)).toContain('Your token is [secret:TOKEN].');
  expectNoTrace(asText(body));
});

test('a result that is fetched again is masked as well', async () => {
  const { taskId } = await callTool(service, sid, 'tell');
  const headers = { 'x-session-id': sid };
  const again = await service.request('POST', '/call', { body: { name: 'tell', input: {}, task_id: taskId }, headers });
  const text = readEvents(again.body)
    .map(({ data }) => data)
    .join('');
  expect(text).toContain('[secret:TOKEN]');
  expectNoTrace(text);
});

test('the refusal of an invalid secret does not contain the secret', async () => {
  for (const header of [Buffer.from(secret).toString('base64'), Buffer.from(JSON.stringify({ TOKEN: secret })).toString('base64')]) {
    const headers = { 'x-deployment': world.environment, 'x-secrets': header };
    const refused = await service.request('POST', '/create_session', { body: {}, headers });
    expect(refused.status).toBe(400);
    expectNoTrace(asText(refused.body));
  }
});

test('no row, log line or transcript has a secret or an API key', async () => {
  const rollout = await eventually(async () => {
    const { rows } = await pool.query<{ id: string }>('SELECT id FROM rollouts WHERE calls >= 3');
    return rows[0] ?? null;
  });
  const { body } = await service.request('GET', `/v1/rollouts/${rollout.id}`);
  const transcript = asText(body);
  expect(transcript).toContain('[secret:TOKEN]');
  for (const path of [`/v1/sessions/${sid}`, `/v1/sessions/${sid}/calls`, '/v1/sessions', '/v1/runs', '/metrics']) {
    expect((await service.request('GET', path)).status).toBe(200);
  }
  expectNoTrace(transcript);
  for (const answer of answers) expect(answer.includes(palestra.apiKey)).toBe(false);

  const rows = await everyRow();
  expect(rows).toContain('[secret:TOKEN]');
  expectNoTrace(rows);
  expect(rows.includes(palestra.apiKey)).toBe(false);

  const log = palestra.output();
  // The log is one: it tells of this session.
  expect(log).toContain('session changed');
  expect(log).toContain('call failed');
  expect(log).toContain(sid);
  expectNoTrace(log);
  expect(log.includes(palestra.apiKey)).toBe(false);
});

test('log lines of calls and sessions have ids and codes only', async () => {
  const known = new Set(
    'level time service sid environment org msg from to failure_class code task_id tool ran_ms waited_ms outcome'.split(' '),
  );
  const lines = palestra
    .output()
    .split('\n')
    .filter((line) => /"(session changed|call failed|session asked for a slot)"/.test(line));
  expect(lines.length).toBeGreaterThan(5);
  for (const line of lines) for (const key of Object.keys(JSON.parse(line) as object)) expect(known).toContain(key);
});

test('the secrets end with their session', async () => {
  expect(await sealed()).not.toBeNull();
  await closeSession(service, sid);
  expect(await sealed()).toBeNull();
  expectNoTrace(await everyRow());
});
