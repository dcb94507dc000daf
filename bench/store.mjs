// The rollout store with one large run (support/large-run.mjs): reads over HTTP, and recomputed steps. BENCH_ROLLOUTS: size of the run,
// default 1000000, for which the targets are defined. The names of the figures contain the size.
import { fillLargeRun, markSteps } from './support/large-run.mjs';
import { databaseUrl, settled } from './support/postgres.mjs';
import { apiKey, startPalestra } from './support/processes.mjs';
import { median } from './support/rounds.mjs';

const ROLLOUTS = Number(process.env.BENCH_ROLLOUTS ?? 1_000_000);
/** 2 000 rollouts per step at the default size; as many in a smaller run. */
const STEPS = Math.min(500, Math.max(1, Math.round(ROLLOUTS / 2_000)));
const ASKS = 60;
/** Warm-up answers. */
const WARMING = 5;
const STEP_ROUNDS = 5;
/** Warm-up rounds: they read rows that were not read since they were written, with code that is not compiled yet. */
const STEP_WARMING = 3;

const p95 = (times) => times.toSorted((a, b) => a - b)[Math.ceil(times.length * 0.95) - 1];

/** p95 in milliseconds of `ASKS` answers after a warm-up. */
async function timed(ask) {
  const times = [];
  for (let at = 0; at < ASKS + WARMING; at += 1) {
    const started = performance.now();
    await ask(at);
    if (at >= WARMING) times.push(performance.now() - started);
  }
  return p95(times);
}

/** Cursors of pages anywhere in the run. */
async function pagesAnywhere(client, run) {
  const { rows } = await client.query(
    `SELECT seq, COALESCE(reward, '-Infinity')::text AS value FROM rollouts WHERE run_seq = $1 AND hashint8(seq) % 97 = 0 ORDER BY random() LIMIT $2`,
    [run, ASKS + WARMING],
  );
  return rows.map(({ value, seq }) => Buffer.from(JSON.stringify(['reward', 'desc', value, seq])).toString('base64url'));
}

/** Changes the reward of every 31st group, as a new rollout would, so that a step becomes dirty. */
const CHANGE =
  'UPDATE rollouts SET reward = 1 - reward WHERE run_seq = $1 AND group_key % 31 = 0 AND sample_idx = 0 AND reward BETWEEN 0 AND 1';

/** Milliseconds of a step in the loop of the service, from the first batch on, without the sleep before it. */
async function stepRound(client, run) {
  await client.query(CHANGE, [run]);
  const marked = await markSteps(client, run);
  const left = async () => (await client.query('SELECT count(*)::int AS left FROM dirty_steps')).rows[0].left;
  let at = marked;
  let from = null;
  for (;;) {
    const now = await left();
    if (from === null && now < marked) from = { now: performance.now(), left: now };
    if (now === 0) break;
    at = now;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  if (from.left === 0) throw new Error(`${marked} steps were made before anybody looked (${at} left): too few to time`);
  return (performance.now() - from.now) / from.left;
}

export async function benchStore() {
  const { default: pg } = await import('pg');
  const palestra = await startPalestra();
  const client = new pg.Client({ connectionString: databaseUrl(palestra.dataDir) });
  client.on('error', () => {});
  const get = async (path) => {
    const answer = await fetch(palestra.url + path, { headers: { 'x-api-key': apiKey } });
    if (!answer.ok) throw new Error(`GET ${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  };
  try {
    await client.connect();
    const { rows } = await client.query('SELECT id FROM organisations ORDER BY created_at LIMIT 1');
    const { run, messages } = await fillLargeRun(client, rows[0].id, { rollouts: ROLLOUTS, steps: STEPS });
    await settled(client);
    const steps = [];
    for (let round = 0; round < STEP_WARMING + STEP_ROUNDS; round += 1) steps.push(await stepRound(client, run));
    const counted = steps.slice(STEP_WARMING);
    await settled(client);
    const cursors = await pagesAnywhere(client, run);
    const { rows: groups } = await client.query('SELECT group_key FROM rollout_groups WHERE run_seq = $1 ORDER BY random() LIMIT 100', [
      run,
    ]);
    const page = (at) => get(`/v1/runs/large/rollouts?limit=100&sort=reward&order=desc&cursor=${cursors[at]}`);
    const search = async (words) => {
      const { hits } = await get(`/v1/runs/large/search?q=${words}`);
      if (hits.length === 0) throw new Error(`nothing was found of ${words}`);
    };
    const figures = [
      ['overview', 100, await timed(() => get('/v1/runs/large'))],
      ['page of 100 at a random depth', 20, await timed(page)],
      ['group', 50, await timed((at) => get(`/v1/runs/large/groups/${groups[at].group_key}`))],
      [`search of a rare word in ${messages} messages, first page`, 1_000, await timed(() => search('needle'))],
      [`search of two common words in ${messages} messages, first page`, 1_000, await timed(() => search('model%20reads'))],
      [`series of ${STEPS} steps`, 100, await timed(() => get('/v1/runs/large/series?m=reward_mean'))],
      [
        `a dirty step of ${ROLLOUTS / STEPS} made again, median of ${STEP_ROUNDS} rounds of all steps, after ${STEP_WARMING}`,
        5,
        median(counted),
      ],
      ['a dirty step, the best of these rounds', 5, Math.min(...counted)],
    ];
    return figures.map(([name, limit, ms]) => ({
      name: `${ROLLOUTS} rollouts: ${name}${name.startsWith('a dirty') ? '' : ', p95'}`,
      ours: ms,
      unit: 'ms',
      most: { value: ms, limit, unit: 'ms' },
    }));
  } finally {
    await client.end();
    await palestra.stop();
  }
}
