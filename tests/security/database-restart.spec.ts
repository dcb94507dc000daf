import { randomUUID } from 'node:crypto';
import { SseParser } from '@palestra/kit/sse';
import pg from 'pg';
import { afterEach, expect, test, vi } from 'vitest';
import { type MortalPostgres, startMortalPostgres } from '../support/mortal-postgres.ts';
import { startReplicas } from '../support/replicas.ts';

// Two built services start on a PostgreSQL of the test's own.
vi.setConfig({ testTimeout: 240_000 });

const SESSIONS_PER_REPLICA = 12;
/** Longer than the lease of a replica, and than the deadline of a question to it. */
const AWAY_MS = 4_500;
/** In one crash the leases may be renewed before anybody looks at them. */
const CRASHES = 3;

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
});

interface Target {
  url: string;
  apiKey: string;
}

async function post(
  { url, apiKey }: Target,
  route: string,
  body: object,
  headers: Record<string, string> = {},
): Promise<{ status: number; text: string }> {
  const response = await fetch(url + route, {
    method: 'POST',
    headers: { 'x-api-key': apiKey, 'content-type': 'application/json', 'x-deployment': 'palestra/bench', ...headers },
    body: JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}

async function open(replica: Target): Promise<string> {
  const sid = new SseParser().push((await post(replica, '/create_session', {})).text)[0]!.data;
  const created = await post(replica, '/create', { split: 'train', index: 0 }, { 'x-session-id': sid });
  if (created.status !== 200) throw new Error(`/create: ${created.status} ${created.text}`);
  return sid;
}

/**
 * Plays one session as a trainer does, which sends a call again, under the same name, until it is answered. The ledger has a named call before it runs, and none
 * begins for a while after a crash of PostgreSQL.
 */
class Player {
  answered = 0;
  /** What ended the session. */
  end: string | null = null;
  #stopped = false;

  constructor(
    readonly replica: Target,
    readonly sid: string,
  ) {}

  async play(): Promise<void> {
    while (!this.#stopped && this.end === null) await this.#call({ 'x-session-id': this.sid, 'idempotency-key': randomUUID() });
  }

  async #call(headers: Record<string, string>): Promise<void> {
    while (!this.#stopped) {
      const answer = await post(this.replica, '/call', { name: 'step', input: { wait_seconds: 0.02 } }, headers).catch(() => null);
      if (answer?.status === 410 || answer?.text.includes('session_lost')) return void (this.end = answer.text);
      if (answer?.status === 200 && answer.text.includes('event: end')) return void (this.answered += 1);
    }
  }

  stop(): void {
    this.#stopped = true;
  }
}

/** Resolves when both replicas have renewed their leases for a while after the restart: whoever was to be declared dead has been. */
async function settled({ url }: MortalPostgres): Promise<{ sid: string; state: string }[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const renewed = `SELECT count(*)::int AS n FROM session_replicas WHERE seen_at > pg_postmaster_start_time() + interval '8 s'`;
    await expect.poll(async () => (await client.query<{ n: number }>(renewed)).rows[0]!.n, { timeout: 90_000, interval: 200 }).toBe(2);
    return (await client.query<{ sid: string; state: string }>('SELECT sid, state FROM sessions')).rows;
  } finally {
    await client.end();
  }
}

test('R3: PostgreSQL is killed and restarts under two replicas; no session of a local environment is lost', async () => {
  const postgres = await startMortalPostgres();
  stops.push(() => postgres.stop());
  const replicas = await startReplicas(2, { databaseUrl: postgres.url, env: { PALESTRA_BUNDLED_ENVIRONMENTS: '1' } });
  stops.push(() => replicas.stop());
  const [first, second] = replicas.all.map(({ url }) => ({ url, apiKey: replicas.client.apiKey }));
  const players: Player[] = [];
  for (const replica of [first!, second!])
    for (let index = 0; index < SESSIONS_PER_REPLICA; index += 1) players.push(new Player(replica, await open(replica)));
  const playing = players.map((player) => player.play());
  await expect.poll(() => players.every(({ answered }) => answered > 0)).toBe(true);

  for (let crash = 0; crash < CRASHES; crash += 1) {
    await postgres.crash(AWAY_MS);
    const before = players.map(({ answered }) => answered);
    await expect
      .poll(() => players.every(({ answered, end }, index) => end !== null || answered > before[index]!), { timeout: 60_000 })
      .toBe(true);
  }
  const sessions = await settled(postgres);
  for (const player of players) player.stop();
  await Promise.all(playing);

  expect(players.flatMap(({ end }) => end ?? [])).toEqual([]);
  expect(sessions).toHaveLength(players.length);
  expect(sessions.filter(({ state }) => state !== 'ready')).toEqual([]);
});

test('R3: a replica reports at once that it is live while PostgreSQL is silent', async () => {
  const postgres = await startMortalPostgres();
  stops.push(() => postgres.stop());
  const replicas = await startReplicas(1, { databaseUrl: postgres.url, env: { PALESTRA_BUNDLED_ENVIRONMENTS: '1' } });
  stops.push(() => replicas.stop());
  const replica = replicas.all[0]!;
  const player = new Player(replica, await open(replica));
  const playing = player.play();
  await expect.poll(() => player.answered).toBeGreaterThan(0);
  const resume = postgres.freeze();
  try {
    for (let question = 0; question < 20; question += 1) {
      const answer = await fetch(`${replica.url}/internal/replica?ask=alive`, { signal: AbortSignal.timeout(10_000) });
      expect(await answer.json()).toMatchObject({ id: expect.any(String) });
    }
  } finally {
    resume();
  }
  player.stop();
  await playing;
});
