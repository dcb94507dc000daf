import type pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type MortalPostgres, startMortalPostgres } from '../support/mortal-postgres.ts';
import { full } from '../support/full.ts';
import { type Palestra, startPalestra } from '../support/palestra.ts';
import { type S3Server, startS3 } from '../support/s3-server.ts';
import { Clients, type Kind, readBack, type Try } from './outage.world.ts';
import { openPool } from '../../apps/api/src/platform/database/pool.ts';

/**
 * The object store away while trainers upload, first silent, then refusing connections, with a crash of PostgreSQL in the middle.
 * PALESTRA_TEST_OUTAGE_S=600 makes it ten minutes; the sealing of what came meanwhile may then wait for up to five more.
 */
const OUTAGE_S = Number(process.env['PALESTRA_TEST_OUTAGE_S'] ?? (full ? 40 : 20));
/** The pause before the next try at most doubles the outage, up to five minutes; then come a regular run of the job and the work. */
const RECOVERY_MS = Math.min(2 * OUTAGE_S, 300) * 1_000 + 90_000;
/** A try that the crash of PostgreSQL could have touched says nothing about the object store. */
const CRASH_MARGIN_MS = 25_000;

let s3: S3Server;
let postgres: MortalPostgres;
let palestra: Palestra;
let pool: pg.Pool;
beforeAll(async () => {
  s3 = await startS3();
  postgres = await startMortalPostgres();
  palestra = await startPalestra({ env: { ...s3.env, DATABASE_URL: postgres.url, PALESTRA_SEAL_FINISHED_S: '0' } });
  pool = openPool({ connectionString: postgres.url, max: 2 });
  pool.on('error', () => {});
});
afterAll(async () => {
  await pool?.end();
  await palestra?.stop();
  await postgres?.stop();
  await s3?.stop();
});

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const query = async (sql: string, values: unknown[] = []) => (await pool.query(sql, values)).rows;
const count = async (sql: string): Promise<number> => (await query(sql))[0].n;
const unsealed = () => count('SELECT count(*)::int AS n FROM rollout_heads WHERE unsealed');

async function ask(method: string, route: string, body?: object): Promise<{ status: number; body: any }> {
  const headers = { 'x-api-key': palestra.apiKey, ...(body && { 'content-type': 'application/json' }) };
  const answer = await fetch(palestra.url + route, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  return { status: answer.status, body: await answer.json() };
}

interface Span {
  from: number;
  to: number;
}
const within = ({ from, to }: Try, span: Span): boolean => from >= span.from && to <= span.to;
const touches = ({ from, to }: Try, span: Span): boolean => from <= span.to && to >= span.from;
/** How many tries were told what. */
function told(tries: readonly Try[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { kind, status, code } of tries) {
    const answer = `${kind} ${status} ${code ?? ''}`.trim();
    counts[answer] = (counts[answer] ?? 0) + 1;
  }
  return counts;
}

test(
  `the object store is away for ${OUTAGE_S} s and PostgreSQL crashes: nothing acknowledged is lost`,
  { timeout: 3_600_000 },
  async () => {
    const clients = new Clients(palestra, 'outage');
    const [before, erased] = [await clients.send('text'), await clients.send('image')];
    await expect.poll(unsealed, { timeout: 60_000, interval: 200 }).toBe(0);
    clients.start('text', 150);
    clients.start('text', 400);
    clients.start('image', 500);
    clients.start('image', 1_000);
    clients.start('large', 5_000);
    await pause(3_000);

    // Silent for a third of the time, refusing for the rest.
    const outage = { from: Date.now(), to: 0 };
    s3.freeze();
    await pause((OUTAGE_S * 1_000) / 3);
    await s3.kill();
    expect(await ask('GET', `/v1/rollouts/${before.id}`)).toMatchObject({ status: 503, body: { code: 'storage_unavailable' } });
    const fresh = await clients.send('text');
    expect((await ask('GET', `/v1/rollouts/${fresh.id}`)).body.messages).toHaveLength(3);
    expect(await ask('DELETE', `/v1/rollouts/${erased.id}`)).toMatchObject({ status: 200, body: { deleted: true } });
    const ordered = await ask('POST', '/v1/exports', { run: 'outage', format: 'rollouts-parquet' });
    expect(ordered.status, JSON.stringify(ordered.body)).toBe(200);
    await pause((OUTAGE_S * 1_000) / 6);
    const crash = { from: Date.now(), to: 0 };
    await postgres.crash();
    crash.to = Date.now() + CRASH_MARGIN_MS;
    await pause(outage.from + OUTAGE_S * 1_000 - Date.now());
    const waiting = await unsealed();
    outage.to = Date.now();
    await s3.restart();
    const back = Date.now();

    await clients.finish();
    await expect.poll(unsealed, { timeout: RECOVERY_MS, interval: 500 }).toBe(0);
    console.info(`${OUTAGE_S} s away: ${waiting} rollouts waited and were sealed ${Date.now() - back} ms after`, told(clients.tries));

    // What needs the store is refused so that clients send it again; what does not is taken.
    const during = clients.tries.filter((one) => within(one, outage));
    const refused = during.filter(({ kind }) => kind !== 'text');
    expect(new Set(refused.map(({ kind }) => kind))).toEqual(new Set<Kind>(['image', 'large']));
    expect(refused.filter(({ status, retryAfter }) => status !== 503 || retryAfter === null)).toEqual([]);
    const taken = during.filter((one) => one.kind === 'text' && !touches(one, crash));
    expect(taken.length).toBeGreaterThan(OUTAGE_S / 2);
    expect(taken.filter(({ status }) => status !== 200)).toEqual([]);
    expect(clients.tries.filter(({ status }) => status !== 200 && status !== 503)).toEqual([]);
    expect(waiting).toBeGreaterThan(taken.length / 2);

    // Everything acknowledged is there once, erased rollouts are not, and nothing has been given up.
    const { acknowledged } = clients;
    for (const kind of ['text', 'image', 'large'] as const) {
      for (const { id, eventIds, digest } of acknowledged[kind].filter((sent) => sent.id !== erased.id)) {
        expect(await readBack(palestra, kind, id), `${kind} ${id}`).toEqual({ eventIds, digest });
      }
    }
    expect((await ask('GET', `/v1/rollouts/${erased.id}`)).status).toBe(404);
    const kept = Object.values(acknowledged).flat().length - 1;
    expect(await count('SELECT count(*)::int AS n FROM rollout_messages')).toBe(0);
    expect(await count('SELECT count(*)::int AS n FROM rollout_transcripts t JOIN rollout_heads h ON h.seq = t.rollout_seq')).toBe(kept);
    expect(await count('SELECT sum(messages)::int AS n FROM rollout_transcripts')).toBe(3 * kept);
    await expect.poll(() => count('SELECT sum(rows)::int AS n FROM lake_parts'), { timeout: 120_000, interval: 500 }).toBe(kept);
    await expect
      .poll(async () => (await ask('GET', `/v1/exports/${ordered.body.id}`)).body.state, { timeout: 150_000, interval: 500 })
      .toBe('complete');
    expect(
      await query(`SELECT task_identifier, last_error FROM palestra_jobs.jobs WHERE attempts >= max_attempts AND key NOT LIKE 'every:%'`),
    ).toEqual([]);
  },
);
