import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { columnsOf, metric, type RolloutFigures } from '@palestra/metrics';
import { messageFlags, type NormalisedRollout, normaliseRollout, parseTolerant, readBatch, skeletonOf } from '@palestra/rollouts';
import { type RandomRun, randomRuns } from '../../support/random-rollouts.ts';
import { expectSameFromNothing, settled } from '../../support/derived-rows.ts';
import { full } from '../../support/full.ts';
import { randomOf } from '../../support/random.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { killed, spawnWorker } from '../../support/worker.ts';

/**
 * Derived rows are a function of what was acknowledged: whatever the order, however often, whatever was lost, while deriving goes on in the
 * background in three processes, one of which is killed, they equal what is made from nothing, and what plain code makes of the same
 * events. On the real PostgreSQL.
 */
const SEEDS = Number(process.env['PALESTRA_PROPERTY_RUNS'] ?? (full ? 4 : 2));
const ROLLOUTS = 24;
let server: TestServer;
let replica: TestServer;
beforeAll(async () => {
  server = await startServer();
  replica = await startServer({ databaseUrl: server.config.databaseUrl, dataDir: server.config.dataDir });
});
afterAll(async () => {
  await replica?.close();
  await server?.close();
});

const sql = async (text: string, values: unknown[] = []) => (await server.database.pool.query(text, values)).rows;
type Event = Record<string, unknown>;
const ENVIRONMENTS = ['acme/one', 'acme/two'];

function shuffled<T>(values: readonly T[], random: () => number): T[] {
  const keyed = values.map((value) => [random(), value] as const);
  return keyed.toSorted(([a], [b]) => a - b).map(([, value]) => value);
}

async function post(events: readonly Event[]): Promise<void> {
  const { status, body } = await server.request('POST', '/v1/rollouts', { body: { events } });
  expect({ status, body }).toMatchObject({ status: 200, body: { rejected: [] } });
}

/** What arrives of the runs: some messages are lost, some come twice, in any order, cut into batches. Start events come, at some time. */
function arrivalsOf(runs: readonly RandomRun[], random: () => number): Event[][] {
  const sent = runs.flatMap(({ rollouts }) =>
    rollouts.flatMap(({ events }) => events.filter((event) => event.eventType === 'rollout' || random() > 0.05)),
  );
  const arriving = shuffled([...sent, ...sent.filter(() => random() < 0.15)], random);
  const batches: Event[][] = [];
  while (arriving.length > 0) batches.push(arriving.splice(0, 1 + Math.floor(random() * 40)));
  return batches;
}

/** Four clients at the same time; reads that settle come between. */
async function postAll(batches: Event[][], names: readonly string[], random: () => number): Promise<void> {
  const left = [...batches];
  const client = async () => {
    for (let batch = left.shift(); batch !== undefined; batch = left.shift()) {
      await post(batch);
      if (random() < 0.2) await server.request('GET', `/v1/runs/${names[Math.floor(random() * names.length)]}`);
    }
  };
  await Promise.all([client(), client(), client(), client()]);
}

/** What plain code makes of the events that were sent. Steps that are inferred are the store's affair. */
function normalised(batches: readonly Event[][], name: string): NormalisedRollout[] {
  const { events } = readBatch(parseTolerant(JSON.stringify({ events: batches.flat() })));
  const starts = events.filter((event) => event.kind === 'start' && event.runName === name);
  return [...new Map(starts.map((event) => [event.rolloutId, event])).values()].map((start) => {
    const own = events.filter(({ rolloutId }) => rolloutId === start.rolloutId);
    const messages = new Map(own.flatMap((event) => (event.kind === 'message' ? [[event.eventId, event] as const] : [])));
    const updates = own.flatMap((event) => (event.kind === 'update' ? [event.rolloutInfo] : []));
    const raw = (start as { raw: Event }).raw as never;
    return normaliseRollout({
      id: start.rolloutId,
      start: raw,
      rolloutInfo: Object.assign({}, (raw as Event)['rollout_info'], ...updates),
      messages: [...messages.values()].map((event) => ({ ...skeletonOf(event, 0), flags: messageFlags(event) })),
      prompt: null,
      startedAt: null,
      receivedAt: 0,
      lastReceivedAt: 0,
      failureClass: null,
    });
  });
}

/** Mean and pass@k of each step that was told, of all environments, against what is stored. */
async function expectFiguresOfPlainCode(batches: readonly Event[][], name: string): Promise<void> {
  const rollouts = normalised(batches, name);
  const outside = new Set(
    rollouts.flatMap(({ reward, environment }) => (reward !== null && (reward < 0 || reward > 1) ? [environment] : [])),
  );
  const success = new Map(
    ENVIRONMENTS.map((name_) => [name_, outside.has(name_) ? { threshold: 0, strict: true } : { threshold: 1, strict: false }]),
  );
  const stored = await sql(
    `SELECT s.phase, s.step, s.rollouts, s.scored, s.figures FROM step_rollups s JOIN runs u ON u.seq = s.run_seq WHERE u.name = $1 AND s.env_id = 0 AND s.step >= 0`,
    [name],
  );
  expect(stored.length).toBeGreaterThan(3);
  for (const { phase, step, rollouts: count, scored, figures } of stored) {
    const own = rollouts.filter((one) => one.step === step && (one.phase ?? 'unknown') === ['train', 'eval', 'unknown'][phase]);
    const columns = columnsOf(
      own.map(
        (one) => ({ ...one, group: one.groupKey, assistantTurns: null, toolTurns: null, failure: null }) as unknown as RolloutFigures,
      ),
    );
    expect([count, scored]).toEqual([own.length, own.filter(({ reward }) => reward !== null).length]);
    for (const key of ['reward_mean', 'pass@1', 'pass@2', 'success', 'zero_variance'].filter((key) => key in figures.canonical)) {
      const answer = metric('canonical', key)!.compute(columns, { success }) as { value: number | null; denominator: number };
      const [value, denominator] = figures.canonical[key];
      expect(denominator, key).toBe(answer.denominator);
      if (value === null || answer.value === null) expect(value, key).toBe(answer.value);
      else expect(value, key).toBeCloseTo(answer.value, 9);
    }
  }
}
test('figures are the same for any order and repeats, and correct after losses', { timeout: 600_000 }, async () => {
  await fc.assert(
    // Runs are named by their seed: none may come twice, as small numbers do where they are preferred.
    fc.asyncProperty(fc.noBias(fc.integer({ min: 1, max: 2 ** 31 - 1 })), async (seed) => {
      // A failure is repeated with: fc.assert(property, { examples: [[seed]] }).
      console.info(`rollups: seed ${seed}`);
      const random = randomOf(seed);
      const runs = randomRuns(seed, ROLLOUTS, random() < 0.5);
      const names = runs.map(({ name }) => name);
      const batches = arrivalsOf(runs, random);
      const worker = await spawnWorker(server.config.databaseUrl!, server.config.dataDir);
      const half = Math.floor(batches.length / 2);
      await postAll(batches.slice(0, half), names, random);
      const kill = setTimeout(() => worker.kill('SIGKILL'), random() * 500);
      await postAll(batches.slice(half), names, random);
      clearTimeout(kill);
      await killed(worker);
      await settled(server.database.pool);
      await expectFiguresOfPlainCode(batches, names[0]!);
      await expectSameFromNothing(server.database.pool);
      // Deletion, new settings, failures that are told later.
      const ids = shuffled(
        runs.flatMap(({ rollouts }) => rollouts.map(({ id }) => id)),
        random,
      );
      for (const id of ids.slice(0, 6)) expect(await server.request('DELETE', `/v1/rollouts/${id}`)).toMatchObject({ status: 200 });
      await sql(
        `UPDATE rollout_heads SET failure_class = 'infrastructure', dirty = true, revision = revision + 1 WHERE id = ANY($1::uuid[])`,
        [ids.slice(6, 12)],
      );
      const change = { settings: { n: 2 + Math.floor(random() * 3), maxTurns: 2 } };
      expect(await server.request('PATCH', `/v1/runs/${names[1]}`, { body: change })).toMatchObject({ status: 200 });
      await expectSameFromNothing(server.database.pool);
    }),
    { numRuns: SEEDS, endOnFailure: true },
  );
});

test('a late reward outside of [0, 1] changes the success rule of every step, and its deletion restores it', async () => {
  const [run] = randomRuns(77, ROLLOUTS, false);
  const one = run!.rollouts.filter(({ events: [start] }) => start!.environment === 'acme/one');
  const events = one
    .flatMap(({ events: own }) => own)
    .map((event) => (event.runName === undefined ? event : { ...event, runName: 'flip' }));
  await post(events);
  const thresholds = async () => {
    await settled(server.database.pool);
    const rows = await sql(`SELECT s.step, s.figures->'success' AS success FROM step_rollups s JOIN runs u ON u.seq = s.run_seq
      JOIN rollout_environments e ON e.id = s.env_id WHERE u.name = 'flip' AND e.environment = 'acme/one' ORDER BY s.phase, s.step`);
    return rows.map(({ success }) => success);
  };
  const before = await thresholds();
  expect(new Set(before.map(({ strict }) => strict))).toEqual(new Set([false]));
  const late = randomRuns(78, 1, false)[0]!.rollouts[0]!;
  const outlier = { ...late.events[0]!, runName: 'flip', environment: 'acme/one', step: 2, metadata: { phase: 'train', reward_total: 7 } };
  await post([outlier]);
  const flipped = await thresholds();
  expect(flipped.length).toBeGreaterThanOrEqual(before.length);
  expect(new Set(flipped.map(({ threshold, strict }) => `${threshold} ${strict}`))).toEqual(new Set(['0 true']));
  await expectSameFromNothing(server.database.pool);
  expect(await server.request('DELETE', `/v1/rollouts/${late.id}`)).toMatchObject({ status: 200 });
  expect(await thresholds()).toEqual(before);
  await expectSameFromNothing(server.database.pool);
});
