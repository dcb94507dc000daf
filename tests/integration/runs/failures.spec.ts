import fc from 'fast-check';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createDatabase, sharedServer, startServer, type TestServer } from '../../support/server.ts';
import { strangerOf } from './run-reads.world.ts';

/** Errors, by their normalised text: a number makes each of them different. */
const TEXTS: Record<string, { class: string; of: (n: number) => string }> = {
  [`unexpected argument 'culprit'`]: { class: 'policy', of: (n: number) => `unexpected argument 'culprit'\n  request ${n}` },
  [`'foo' is not a valid tool`]: { class: 'policy', of: () => `'foo' is not a valid tool` },
  '502 Bad Gateway': { class: 'infrastructure', of: (n: number) => `502 Bad Gateway\nrequest ${n}` },
  'KeyError: <n>': {
    class: 'environment',
    of: (n: number) => `Traceback (most recent call last):\n  File "a.py", line ${n}\nKeyError: ${n}`,
  },
};
const ERRORS = Object.keys(TEXTS);

interface Plan {
  step: number;
  /** Calls in order; `error`: the result is one. */
  calls: { tool: string; error: string | null }[];
  stop: 'finished' | 'max_turns' | 'no_tool_call' | 'infra_error';
  reported: boolean;
  reward: 0 | 0.5 | 1;
}

const plan: fc.Arbitrary<Plan> = fc.record({
  step: fc.nat(3),
  calls: fc.array(fc.record({ tool: fc.constantFrom('ask', 'accuse'), error: fc.option(fc.constantFrom(...ERRORS)) }), { maxLength: 4 }),
  stop: fc.constantFrom('finished', 'max_turns', 'no_tool_call', 'infra_error'),
  reported: fc.boolean(),
  reward: fc.constantFrom(0, 0.5, 1),
});

function eventsOf(runName: string, id: string, { step, calls, stop, reported, reward }: Plan, n: number): object[] {
  // Trainers report it in either place.
  const error = reported && stop === 'infra_error' ? { error: `session_lost: session ${n} is gone` } : {};
  const [rollout_info, metadata] = n % 2 === 0 ? [{ task_index: n, ...error }, {}] : [{ task_index: n }, error];
  const start = {
    eventType: 'rollout',
    eventId: id,
    timestamp: 1_000,
    runName,
    step,
    environment: 'acme/clue',
    split: 'train',
    rollout_info,
  };
  const message = { eventType: 'message', rolloutEventId: id, timestamp: 1_000, isFinished: false, metadata: {} };
  return [
    { ...start, metadata: { stop_reason: stop, ...metadata } },
    { ...message, eventId: randomUUID(), index: 0, type: 'user_message', content: 'Who was it?', reward },
    ...calls.flatMap(({ tool, error }, at) => [
      { ...message, eventId: randomUUID(), index: 1 + 2 * at, type: 'tool_call', name: tool, callId: `c${at}`, content: '{}' },
      {
        ...message,
        eventId: randomUUID(),
        index: 2 + 2 * at,
        type: 'tool_result',
        callId: `c${at}`,
        content: error === null ? 'fine' : TEXTS[error]!.of(n),
        metadata: { is_error: error !== null },
      },
    ]),
  ];
}

/** The rules of docs/reference/failures.md, read from the raw calls; null: no cause. */
function expectedCause({ calls, stop, reported }: Plan): { class: string; tool: string | null; error: string } | null {
  const last = calls.at(-1);
  if (stop === 'infra_error') {
    const cause = { class: 'infrastructure', tool: null };
    if (last?.error != null && TEXTS[last.error]!.class !== 'policy') return { ...cause, tool: last.tool, error: last.error };
    return { ...cause, error: reported ? 'session_lost: session <n> is gone' : stop };
  }
  for (let at = calls.length - 1; at >= 0; at -= 1) {
    const { tool, error } = calls[at]!;
    const recovered = calls.slice(at + 1).some((later) => later.tool === tool && later.error === null);
    if (error !== null && !recovered) return { class: TEXTS[error]!.class, tool, error };
  }
  return stop === 'finished' ? null : { class: 'policy', tool: null, error: stop };
}

let server: TestServer;
const get = async (url: string, headers = {}) => (await server.request('GET', url, { headers })).body;
const runPath = (run: string, rest: string) => `/v1/runs/${encodeURIComponent(run)}/${rest}`;
const send = async (events: object[]) =>
  expect(await server.request('POST', '/v1/rollouts', { body: { events } })).toMatchObject({ status: 200 });

beforeAll(async () => {
  server = await sharedServer();
});
afterAll(() => server.close());

interface Cluster {
  fingerprint: string;
  class: string;
  tool: string | null;
  error: string | null;
  count: number;
  solved: number;
  trend: number[];
  first_step: number;
  last_step: number;
  example: { id: string; stop: string; index: number | null; text: string | null };
}

it('clusters of a page are what a slow reading of the raw events counts, and so many rollouts are found by the query', async () => {
  let runs = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(plan, { minLength: 1, maxLength: 30 }), async (plans) => {
      const run = `failures property ${randomUUID()} ${(runs += 1)}`;
      const ids = plans.map(() => randomUUID());
      await send(plans.flatMap((one, n) => eventsOf(run, ids[n]!, one, n)));
      for (const [query, inScope] of [
        ['', () => true],
        ['&steps=1..2', ({ step }: Plan) => step >= 1 && step <= 2],
      ] as const) {
        const answer = await get(runPath(run, `failures?limit=100${query}`));
        expect(await get(runPath(run, `failures?limit=100${query}`))).toEqual(answer);
        const failures: Cluster[] = answer.failures;
        const counted = new Map<string, Plan[]>();
        for (const one of plans.filter(inScope)) {
          const cause = expectedCause(one);
          const key = JSON.stringify(cause === null ? null : [cause.class, cause.tool, cause.error]);
          counted.set(key, [...(counted.get(key) ?? []), one]);
        }
        const none = counted.get('null')?.length ?? 0;
        counted.delete('null');
        const found = failures.map((one) => [JSON.stringify([one.class, one.tool, one.error ?? one.example.stop]), one] as const);
        expect(new Set(found.map(([key]) => key))).toEqual(new Set(counted.keys()));
        for (const [key, one] of found) {
          const members = counted.get(key)!;
          const steps = members.map(({ step }) => step);
          const everywhere = plans.filter((other) => JSON.stringify(expectedCause(other)) === JSON.stringify(expectedCause(members[0]!)));
          expect(one).toMatchObject({
            count: members.length,
            first_step: Math.min(...steps),
            last_step: Math.max(...steps),
            first_seen_step: Math.min(...everywhere.map(({ step }) => step)),
          });
          // An interrupted rollout has no reward, so that it did not succeed.
          expect(one.solved).toBe(members.filter(({ reward, stop }) => reward === 1 && stop !== 'infra_error').length);
          // The bins are those of the steps in scope, one step each.
          expect(one.trend).toEqual(answer.bins.map(({ from }: { from: number }) => members.filter(({ step }) => step === from).length));
          const q = `failure:${one.fingerprint}${query === '' ? '' : ' step:1..2'}`;
          expect((await get(runPath(run, `rollouts?q=${encodeURIComponent(q)}`))).total).toBe(one.count);
        }
        const failed = failures.reduce((sum, { count }) => sum + count, 0);
        expect(answer).toMatchObject({ failed, kinds: failures.length, pending: 0, rollouts: failed + none });
        const inSteps = plans.filter(inScope).map(({ step }) => step);
        for (const { from, to, rollouts } of answer.bins) {
          expect(to).toBe(from);
          expect(rollouts).toBe(inSteps.filter((step) => step === from).length);
        }
        expect([answer.bins[0]?.from, answer.bins.at(-1)?.to]).toEqual(
          inSteps.length === 0 ? [undefined, undefined] : [Math.min(...inSteps), Math.max(...inSteps)],
        );
        expect(Object.values<number>(answer.classes).reduce((a, b) => a + b, 0)).toBe(failed);
        const classed = await get(runPath(run, `rollouts?q=${encodeURIComponent(`failure:policy${query === '' ? '' : ' step:1..2'}`)}`));
        expect(classed.total).toBe(answer.classes.policy);
      }
    }),
    { numRuns: 8 },
  );
});

it('quotes an example at its failing call, and the page of the rollout gives the same cause', async () => {
  const run = `failures example ${randomUUID()}`;
  const id = randomUUID();
  const calls = [
    { tool: 'ask', error: null },
    { tool: 'accuse', error: ERRORS[0]! },
  ];
  await send(eventsOf(run, id, { step: 7, calls, stop: 'max_turns', reported: false, reward: 0 }, 41));
  const [cluster] = (await get(runPath(run, 'failures'))).failures;
  expect(cluster).toMatchObject({ class: 'policy', kind: 'call', tool: 'accuse', count: 1, solved: 0, first_step: 7 });
  expect(cluster.example).toEqual({ id, step: 7, stop: 'max_turns', index: 4, text: `unexpected argument 'culprit'` });
  const { failure } = await get(`/v1/rollouts/${id}/header`);
  expect(failure).toMatchObject({ fingerprint: cluster.fingerprint, tool: 'accuse', index: 4, text: `unexpected argument 'culprit'` });
});

it('quotes what the trainer reported in the metadata of an interrupted rollout, one line of bounded length', async () => {
  const run = `failures reported ${randomUUID()}`;
  const id = randomUUID();
  const [start, ...messages] = eventsOf(run, id, { step: 7, calls: [], stop: 'infra_error', reported: false, reward: 0 }, 41);
  const error = `session_lost: <img src=x onerror=alert(1)>\n${'gone '.repeat(1_000)}`;
  await send([{ ...start, metadata: { stop_reason: 'infra_error', error } }, ...messages]);
  const { failure, failure_class } = await get(`/v1/rollouts/${id}/header`);
  expect(failure_class).toBe('infrastructure');
  expect(failure).toMatchObject({ kind: 'reported', class: 'infrastructure', stop: 'infra_error' });
  expect(failure.text).toMatch(/^session_lost: <img src=x onerror=alert\(1\)>/);
  expect(failure.text).not.toContain('\n');
  expect(failure.text.length).toBeLessThan(1_000);
});

it('names other runs of the organisation with the same cause, and none of others', async () => {
  const calls = [{ tool: 'accuse', error: ERRORS[2]! }];
  const [a, b] = [`failures a ${randomUUID()}`, `failures b ${randomUUID()}`];
  const failing: Plan = { step: 1, calls, stop: 'finished', reported: false, reward: 0 };
  await send(eventsOf(a, randomUUID(), failing, 1));
  await send([...eventsOf(b, randomUUID(), failing, 2), ...eventsOf(b, randomUUID(), failing, 3)]);
  const stranger = await strangerOf(server);
  const theirs = `failures theirs ${randomUUID()}`;
  const body = { events: eventsOf(theirs, randomUUID(), failing, 4) };
  expect(await server.request('POST', '/v1/rollouts', { body, headers: stranger })).toMatchObject({ status: 200 });
  await get(runPath(b, 'failures'));
  const [cluster] = (await get(runPath(a, 'failures'))).failures;
  expect(cluster.other_runs).toContainEqual({ name: b, count: 2 });
  expect(cluster.other_runs.map(({ name }: { name: string }) => name)).not.toContain(theirs);
  const [other] = (await get(runPath(theirs, 'failures'), stranger)).failures;
  expect(other).toMatchObject({ fingerprint: cluster.fingerprint, count: 1, other_runs: [] });
});

it('rows from before are pending until they are derived again, and in no count', async () => {
  const run = `failures before ${randomUUID()}`;
  const calls = [{ tool: 'accuse', error: ERRORS[2]! }];
  const ids = [randomUUID(), randomUUID()];
  for (const [n, id] of ids.entries()) await send(eventsOf(run, id, { step: 1, calls, stop: 'finished', reported: false, reward: 0 }, n));
  expect(await get(runPath(run, 'failures'))).toMatchObject({ failed: 2, pending: 0 });
  const { pool } = server.database;
  // As migration 0037 leaves rows; the version of the run is that of its figures, by which answers are cached.
  await pool.query('UPDATE rollouts SET cause = 0, cause_index = NULL, cause_kind = NULL, cause_tool = NULL WHERE id = $1', [ids[0]]);
  await pool.query('UPDATE runs SET version = version + 1 WHERE name = $1', [run]);
  expect(await get(runPath(run, 'failures'))).toMatchObject({ failed: 1, pending: 1, rollouts: 2 });
  expect((await get(`/v1/rollouts/${ids[0]}/header`)).failure).toBeNull();
  await pool.query('UPDATE rollout_heads SET dirty = true, revision = revision + 1 WHERE id = $1', [ids[0]]);
  await expect.poll(async () => get(runPath(run, 'failures')), { timeout: 20_000 }).toMatchObject({ failed: 2, pending: 0 });
});

it('fingerprints by older rules are derived again in the background after the start of a new version', async () => {
  const run = 'failures of version 8';
  const calls = [{ tool: 'accuse', error: ERRORS[0]! }];
  const database = await createDatabase();
  const first = await startServer({ databaseUrl: database.url });
  const headers = { 'x-api-key': first.apiKey };
  const path = `/v1/runs/${encodeURIComponent(run)}/failures`;
  let second: TestServer | null = null;
  try {
    const events = [1, 2].flatMap((n) => eventsOf(run, randomUUID(), { step: 1, calls, stop: 'finished', reported: false, reward: 0 }, n));
    expect(await first.request('POST', '/v1/rollouts', { body: { events } })).toMatchObject({ status: 200 });
    const { failures } = (await first.request('GET', path)).body;
    expect(failures).toMatchObject([{ error: ERRORS[0], count: 2 }]);
    // Version 8 told failures by the one-word code beside the message of the environment.
    const old = 0x0123_4567_89ab_cde1n;
    await first.database.pool.query('UPDATE rollouts SET cause = $1, normaliser = 8', [String(old)]);
    await first.database.pool.query('UPDATE runs SET version = version + 1');
    expect((await first.request('GET', path)).body.failures).toMatchObject([{ fingerprint: '0123456789abcde1' }]);
    await first.close();
    second = await startServer({ databaseUrl: database.url });
    await expect
      .poll(async () => (await second!.request('GET', path, { headers })).body)
      .toMatchObject({ failures: [{ fingerprint: failures[0].fingerprint, count: 2 }], pending: 0 });
  } finally {
    await (second ?? first).close();
    await database.drop();
  }
});

it('another text per rollout gives as many causes; the answer has the most frequent ones and counts the rest', async () => {
  const run = `failures hostile ${randomUUID()}`;
  const message = (id: string, index: number, more: object) => ({
    eventType: 'message',
    rolloutEventId: id,
    timestamp: 1_000,
    index,
    isFinished: false,
    eventId: randomUUID(),
    ...more,
  });
  const letters = (n: number) => String.fromCodePoint(97 + (n % 26)) + String.fromCodePoint(97 + Math.floor(n / 26));
  const events = Array.from({ length: 60 }, (_, n) => {
    const id = randomUUID();
    return [
      { eventType: 'rollout', eventId: id, timestamp: 1_000, runName: run, step: 1, environment: 'acme/clue', metadata: {} },
      message(id, 0, { type: 'tool_call', name: 'ask', callId: 'c', content: '{}', metadata: {} }),
      message(id, 1, { type: 'tool_result', callId: 'c', content: `bad ${letters(n)} \u0000 \u{1F600}`, metadata: { is_error: true } }),
    ];
  });
  await send(events.flat());
  const answer = await get(runPath(run, 'failures?limit=10'));
  expect(answer.failures).toHaveLength(10);
  expect(answer).toMatchObject({ kinds: 60, failed: 60 });
});
