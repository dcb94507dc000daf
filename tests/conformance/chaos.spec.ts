import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterEach, describe, expect, test } from 'vitest';
import { type MortalPostgres, startMortalPostgres } from '../support/mortal-postgres.ts';
import { full } from '../support/full.ts';
import { addRemote } from '../support/palestra.ts';
import { randomOf } from '../support/random.ts';
import { type Replicas, startReplicas } from '../support/replicas.ts';
import { clientEnv } from './support/client-env.ts';
import { python, pythonFolder, run, startUpstream } from './support/python.ts';

/**
 * The official Python client through a proxy that cuts, stalls and duplicates, on two replicas that are killed at random, as is their
 * PostgreSQL. The client plays until each of these has happened at least once. CHAOS_SEED and CHAOS_SESSIONS vary it.
 */
const seed = Number(process.env['CHAOS_SEED'] ?? 20_261_121);
const sessions = Number(process.env['CHAOS_SESSIONS'] ?? (full ? 512 : 64));
const CONCURRENCY = full ? 64 : 24;

const stops: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
});

interface Played {
  results: Record<string, string>;
  failed: Record<string, string>;
  reopened: string[];
}

/** Plays while the deeds are done, and until each of them has been done once. */
async function play({ replicas, endFile }: Chaos, deployment: string, tool: string): Promise<Played> {
  const numbers = [sessions, CONCURRENCY, seed].map(String);
  const args = [path.join(pythonFolder, 'many_sessions.py'), deployment, tool, ...numbers, endFile];
  const finished = await run(python('v167'), args, { env: clientEnv(replicas.client), timeoutMs: 240_000 });
  if (finished.code !== 0) throw new Error(`many_sessions.py ended with ${finished.code}:\n${finished.output.slice(-5_000)}`);
  return JSON.parse(finished.stdout.trimEnd().split('\n').at(-1)!) as Played;
}

/** Runs faults of `deeds` until each has run and the proxy has cut and repeated requests; then lets the client end, and goes on until the returned function is called. */
function haunt({ endFile, replicas }: Chaos, deeds: (() => Promise<unknown>)[], pauseMs: number): () => Promise<number> {
  const random = randomOf(seed);
  let over = false;
  let done = 0;
  const haunting = (async () => {
    for (;;) {
      // Soon at first: however short the run is, it is haunted.
      await new Promise((resolve) => setTimeout(resolve, pauseMs * (done === 0 ? 0.25 : 0.5 + random())));
      if (over) return;
      await deeds[done < deeds.length ? done : Math.floor(random() * deeds.length)]!();
      done += 1;
      const { cut, duplicated } = replicas.proxy.counts;
      if (done >= deeds.length && cut > 0 && duplicated > 0) writeFileSync(endFile, '');
    }
  })();
  // A deed that fails must end the play, too: `await` of the returned function reports it.
  haunting.catch(() => existsSync(path.dirname(endFile)) && writeFileSync(endFile, ''));
  return async () => {
    over = true;
    await haunting;
    return done;
  };
}

/**
 * Kills PostgreSQL, and waits until both replicas have written again what it forgot, as they do within a second of its return: only the crash
 * of both within that second can forget a call (ADR 2). On a loaded machine the next kill would be early enough for that.
 */
async function crashed(postgres: MortalPostgres): Promise<void> {
  await postgres.crash();
  const client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
  try {
    for (const deadline = Date.now() + 60_000; Date.now() < deadline;) {
      const { rows } = await client.query(
        `SELECT count(*)::int AS n FROM session_replicas WHERE seen_at > pg_postmaster_start_time() + interval '1 s'`,
      );
      if (rows[0].n >= 2) return;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  } finally {
    await client.end();
  }
}

async function restarted(replicas: Replicas, index: number): Promise<void> {
  await replicas.all[index]!.kill();
  await replicas.all[index]!.restart();
}

interface Ending {
  state: string;
  failure_class: string | null;
  count: number;
}

/** Waits until no session is alive, and answers how they ended. */
async function endings(postgres: MortalPostgres): Promise<{ live: number; ended: Ending[]; unclear: number; falseZeros: number }> {
  const client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
  try {
    for (const deadline = Date.now() + 90_000; ;) {
      // A reservation that its client never used holds nothing; it expires by itself.
      const { rows: live } = await client.query(
        `SELECT count(*)::int AS n FROM sessions WHERE ended_at IS NULL AND admitted_at IS NOT NULL`,
      );
      if (live[0].n === 0 || Date.now() > deadline) {
        const { rows: ended } = await client.query<Ending>(
          `SELECT state, failure_class, count(*)::int AS count FROM sessions WHERE admitted_at IS NOT NULL GROUP BY 1, 2 ORDER BY 3 DESC`,
        );
        const { rows: odd } = await client.query(
          `SELECT count(*) FILTER (WHERE failure_class IS NULL)::int AS unclear,
                  count(*) FILTER (WHERE reward IS NOT NULL AND failure_class <> 'ok')::int AS zeros FROM session_calls WHERE ended_at IS NOT NULL`,
        );
        return { live: live[0].n, ended, unclear: odd[0].unclear, falseZeros: odd[0].zeros };
      }
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  } finally {
    await client.end();
  }
}

const HEARTBEAT = { PALESTRA_SESSION_IDLE_S: '20', DATABASE_POOL_SIZE: '10' };
const FAULTS = { seed, cut: 0.12, stall: 0.03, duplicate: 0.1 };

interface Chaos {
  replicas: Replicas;
  postgres: MortalPostgres;
  /** How often each id was executed. */
  executions(): Map<string, number>;
  countFile: string;
  /** Its existence ends the play. */
  endFile: string;
}

async function startChaos(env: Record<string, string> = {}): Promise<Chaos> {
  const folder = mkdtempSync(path.join(tmpdir(), 'palestra-chaos-'));
  stops.push(() => rmSync(folder, { recursive: true, force: true }));
  const countFile = path.join(folder, 'executions');
  const postgres = await startMortalPostgres();
  stops.push(() => postgres.stop());
  const replicas = await startReplicas(2, { databaseUrl: postgres.url, env: { ...HEARTBEAT, ...env }, proxy: FAULTS });
  stops.push(() => replicas.stop());
  const executions = () => {
    const counts = new Map<string, number>();
    const lines = existsSync(countFile) ? readFileSync(countFile, 'utf8').trim().split('\n') : [];
    for (const id of lines) counts.set(id, (counts.get(id) ?? 0) + 1);
    return counts;
  };
  return { replicas, postgres, executions, countFile, endFile: path.join(folder, 'end') };
}

async function startKit(countFile: string, port = 0): Promise<{ url: string; kill(): Promise<void> }> {
  const child = spawn(process.execPath, [path.join(import.meta.dirname, 'support/counted-environment.mjs')], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, NODE_OPTIONS: '', COUNT_FILE: countFile, PORT: String(port) },
  });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return {
    url: line.toString().trim(),
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    },
  };
}

/** The kinds of errors, and how often each came. */
function tally(errors: string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const error of errors) {
    const kind = error.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '…').slice(0, 160);
    counts[kind] = (counts[kind] ?? 0) + 1;
  }
  return counts;
}

/** What holds however bad it gets. */
async function assertSane(chaos: Chaos, played: Played, report: { environment: string; kills: number }): Promise<void> {
  const { live, ended, unclear, falseZeros } = await endings(chaos.postgres);
  const calls = Object.keys(played.results).length;
  const { failed, reopened } = played;
  console.log(
    JSON.stringify({
      seed,
      ...report,
      ...chaos.replicas.proxy.counts,
      calls,
      failed: Object.keys(failed).length,
      reopened: tally(reopened),
      ended,
    }),
  );
  // Else nothing of the following would be proven.
  const { cut, duplicated } = chaos.replicas.proxy.counts;
  expect(Math.min(report.kills, cut, duplicated), 'kills, cuts and duplicates').toBeGreaterThan(0);
  const crashes = chaos.replicas.all.flatMap(({ output }) =>
    output()
      .split('\n')
      .filter((line) => line.includes('"request failed"')),
  );
  expect(crashes).toEqual([]);
  const executions = chaos.executions();
  const twice = [...executions].filter(([, count]) => count > 1);
  if (twice.length > 0)
    console.log(
      JSON.stringify(
        await ledgerOf(
          chaos.postgres,
          twice.map(([id]) => id),
        ),
        null,
        1,
      ),
    );
  expect(twice).toEqual([]);
  for (const [id, text] of Object.entries(played.results)) expect(text).toBe(id);
  // A call without a result fails with the loss of its session: by its own answer, or by 410 of a ping, of which the client shows the status only.
  for (const error of Object.values(failed)) expect(error).toMatch(/Session lost|SessionTerminatedError: .*server returned 410/);
  expect({ live, unclear, falseZeros }).toEqual({ live: 0, unclear: 0, falseZeros: 0 });
  for (const { state, failure_class: failure } of ended) {
    expect(['closed', 'expired', 'lost']).toContain(state);
    expect(failure).toBe(state === 'closed' ? 'ok' : 'infrastructure');
  }
}

/** What the ledger has of calls that ran twice. */
async function ledgerOf(postgres: MortalPostgres, ids: string[]): Promise<object[]> {
  const client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
  try {
    const { rows } = await client.query<object>(
      `SELECT c.*, s.state AS session_state FROM session_calls c JOIN sessions s USING (sid) JOIN unnest($1::text[]) AS n(id) ON position(n.id IN c.input) > 0 ORDER BY c.seq`,
      [ids],
    );
    return rows;
  } finally {
    await client.end();
  }
}

const missing = (chaos: Chaos, played: Played) => Object.keys(played.results).filter((id) => !chaos.executions().has(id));

describe(`chaos, seed ${seed}, ${sessions} sessions`, () => {
  test('replicas and PostgreSQL are killed, an environment of the kit: every call runs exactly once', async () => {
    const chaos = await startChaos();
    const kit = await startKit(chaos.countFile);
    stops.push(() => kit.kill());
    const { replicas, postgres } = chaos;
    const deployment = await addRemote(replicas.all[0]!, 'counted', kit.url);
    const calm = haunt(chaos, [() => crashed(postgres), () => restarted(replicas, 0), () => restarted(replicas, 1)], 2_000);
    const played = await play(chaos, deployment, 'work');
    await assertSane(chaos, played, { environment: 'kit', kills: await calm() });
    expect(played.failed).toEqual({});
    expect(missing(chaos, played)).toEqual([]);
  }, 420_000);

  test('the same with the SDK’s own server: a call whose outcome nobody can know is said to be so', async () => {
    const chaos = await startChaos();
    const upstream = await startUpstream({
      interpreter: 'v167',
      module: 'counted_calls',
      classes: ['CountedEnv'],
      env: { COUNT_FILE: chaos.countFile },
    });
    stops.push(() => upstream.stop());
    const { replicas, postgres } = chaos;
    const deployment = await addRemote(replicas.all[0]!, 'counted', upstream.url);
    const calm = haunt(chaos, [() => crashed(postgres), () => restarted(replicas, 0), () => restarted(replicas, 1)], 2_000);
    const played = await play(chaos, deployment, 'work');
    const kills = await calm();
    await assertSane(chaos, played, { environment: 'sdk', kills });
    expect(missing(chaos, played)).toEqual([]);
    // Only what was on its way to the upstream server in the very moment of a kill.
    expect(Object.keys(played.failed).length).toBeLessThan((kills * CONCURRENCY) / 2);
  }, 420_000);

  test('the backend is killed in the middle: lost sessions say so, nothing is run again on a guess', async () => {
    const chaos = await startChaos();
    let kit = await startKit(chaos.countFile);
    stops.push(() => kit.kill());
    const port = Number(new URL(kit.url).port);
    const deployment = await addRemote(chaos.replicas.all[0]!, 'counted', kit.url);
    const calm = haunt(
      chaos,
      [
        async () => {
          await kit.kill();
          kit = await startKit(chaos.countFile, port);
        },
      ],
      4_000,
    );
    const played = await play(chaos, deployment, 'work');
    await assertSane(chaos, played, { environment: 'killed kit', kills: await calm() });
    expect(missing(chaos, played)).toEqual([]);
  }, 420_000);

  const bundled = { PALESTRA_BUNDLED_ENVIRONMENTS: '1', PALESTRA_DRAIN_S: '10' };

  test('a rolling restart of two replicas under load loses nothing', async () => {
    const chaos = await startChaos(bundled);
    const { all } = chaos.replicas;
    const deploy = (index: number) => async () => {
      await all[index]!.terminate();
      await all[index]!.restart();
    };
    const calm = haunt(chaos, [deploy(0), deploy(1)], 1_500);
    const played = await play(chaos, 'palestra/echo', 'echo');
    const kills = await calm();
    await assertSane(chaos, played, { environment: 'bundled, SIGTERM', kills });
    expect(kills).toBeGreaterThan(1);
    expect(played.failed).toEqual({});
  }, 420_000);

  test('sessions of a deterministic environment survive kill -9 of their replica and of their process', async () => {
    const chaos = await startChaos(bundled);
    const { replicas } = chaos;
    // Of this test's replicas only: another Palestra on the machine keeps its processes.
    const parents = () => replicas.all.map((replica) => replica.pid()).join(',');
    let children = 0;
    const killChild = async () => {
      // The client may still be starting, and its first session opening.
      for (let look = 0; look < 600; look += 1) {
        const { code } = await run('pkill', ['-9', '-P', parents(), '-f', 'environments/dist/main.js echo ']);
        if (code === 0) return void (children += 1);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    };
    const calm = haunt(chaos, [killChild, () => restarted(replicas, 0), () => restarted(replicas, 1)], 2_000);
    const played = await play(chaos, 'palestra/echo', 'echo');
    await assertSane(chaos, played, { environment: 'bundled, kill -9', kills: await calm() });
    expect(children).toBeGreaterThan(0);
    expect(played.failed).toEqual({});
  }, 420_000);
});
