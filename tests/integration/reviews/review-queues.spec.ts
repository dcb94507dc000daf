import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sharedServer, type TestServer } from '../../support/server.ts';
import { seeded, strangerOf, upload } from '../runs/run-reads.world.ts';
import { addReviewer, answer, answerAll, createQueue, next, type Reviewer } from './reviews.world.ts';

const RUN = 'reviewed';
const rollouts = seeded(RUN, { steps: 4, tasks: 3, n: 4 });
let server: TestServer;
let stranger: Record<string, string>;
let ana: Reviewer;
let ben: Reviewer;
const ask = (method: string, url: string, body?: unknown, headers = {}) => server.request(method, url, { body, headers });
const total = async (q: string) => (await ask('GET', `/v1/runs/${RUN}/rollouts?q=${encodeURIComponent(q)}`)).body.total;
const itemsOf = async (queue: string) => {
  const { rows } = await server.database.pool.query(
    `SELECT (SELECT id FROM rollout_heads WHERE seq = i.rollout_seq) AS a, (SELECT id FROM rollout_heads WHERE seq = i.other_seq) AS b
     FROM review_items i WHERE queue_id = $1 ORDER BY position`,
    [queue],
  );
  return rows as { a: string; b: string | null }[];
};

beforeAll(async () => {
  server = await sharedServer();
  [stranger, ana, ben] = await Promise.all([strangerOf(server), addReviewer(server, 'ana'), addReviewer(server, 'ben')]);
  await upload(server, RUN, rollouts);
});
afterAll(() => server.close());

describe('a sample', () => {
  it('is refused without a key, of nothing, of a regex, and beyond its bounds', async () => {
    const path = '/v1/review-queues';
    expect(await ask('POST', path, { name: 'q' }, { 'x-api-key': '' })).toMatchObject({ status: 401 });
    for (const [body, code] of [
      [{ run: 'never' }, 'run_not_found'],
      [{ run: RUN, query: 'rewrad:1' }, 'invalid_query'],
      [{ run: RUN, query: '/fox/' }, 'invalid_query'],
      [{ run: RUN, query: 'reward:>100' }, 'invalid_query'],
      [{ run: RUN, query: 'sample:0', mode: 'pairs' }, 'invalid_query'],
      [{ run: RUN, reviewers: [randomUUID()] }, 'member_not_found'],
      [{ run: RUN, sample: 10_001 }, 'invalid_body'],
      [{ run: RUN, labels: ['good'] }, 'invalid_body'],
      [{ run: RUN, labels: ['good', 'good'] }, 'invalid_body'],
      [{ run: RUN, labels: ['a\u0007b', 'c'] }, 'invalid_body'],
      [{ run: RUN, overlap: 2, reviewers: [ana.id] }, 'invalid_body'],
      [{ run: RUN, name: ' ' }, 'invalid_body'],
    ] as const)
      expect([body, (await ask('POST', path, { name: 'q', ...body })).body.code]).toEqual([body, code]);
    expect((await ask('GET', path)).body.queues).toEqual([]);
  });

  it('is the same for the same seed, and another for another', async () => {
    const of = async (seed: number) => itemsOf((await createQueue(server, { run: RUN, sample: 10, seed })).id);
    const first = await of(1);
    expect(first).toHaveLength(10);
    expect(new Set(first.map(({ a }) => a)).size).toBe(10);
    expect(await of(1)).toEqual(first);
    expect(await of(2)).not.toEqual(first);
    // A prefix, so that a larger sample continues a smaller one.
    expect((await itemsOf((await createQueue(server, { run: RUN, sample: 20, seed: 1 })).id)).slice(0, 10)).toEqual(first);
  });

  it('only has rollouts of the query, and pairs of one group', async () => {
    const { id, query, items } = await createQueue(server, { run: RUN, query: 'step:1..2   sample:0', sample: 100 });
    expect({ query, items }).toEqual({ query: 'step:1..2 sample:0', items: 6 });
    const byId = new Map(rollouts.map((one) => [one.id, one]));
    for (const { a } of await itemsOf(id)) expect(byId.get(a)).toMatchObject({ sample: 0 });
    const pairs = await itemsOf((await createQueue(server, { run: RUN, mode: 'pairs', sample: 100 })).id);
    expect(pairs).toHaveLength(12);
    for (const { a, b } of pairs) {
      const [left, right] = [byId.get(a)!, byId.get(b!)!];
      expect(right).toMatchObject({ step: left.step, task: left.task });
      expect(right.sample).not.toBe(left.sample);
    }
    expect((await createQueue(server, { run: RUN, mode: 'pairs' })).labels).toEqual([]);
  });

  it('has limits for an organisation', async () => {
    const { rows } = await server.database.pool.query(
      `INSERT INTO review_queues (org_id, name, query, seed, mode, labels, overlap, reviewers, user_id, author)
       SELECT o.id, 'full', '', 0, 'labels', '{a,b}', 1, '{}', o.id, 'x' FROM organisations o, generate_series(1, 200) WHERE o.name = $1 RETURNING id`,
      [server.orgName],
    );
    expect(await ask('POST', '/v1/review-queues', { name: 'q', run: RUN })).toMatchObject({ status: 429, body: { code: 'limit_reached' } });
    await server.database.pool.query('DELETE FROM review_queues WHERE id = ANY($1)', [rows.map(({ id }) => id)]);
  });
});

describe('answers', () => {
  it('are annotations once their item is complete, and can be changed', async () => {
    const { id } = await createQueue(server, {
      run: RUN,
      query: 'step:0 task:0',
      labels: ['fine work', 'poor'],
      criteria: '**Fine**: solves it.',
    });
    const { item } = await next(server, id);
    expect(item).toMatchObject({ position: 1, complete: false, answer: null, others: [], previous: null });
    expect(await answer(server, id, 1, { choice: 'unheard of' })).toMatchObject({ status: 422, body: { code: 'invalid_body' } });
    expect(await answer(server, id, 1, { choice: null, comment: 'why' })).toMatchObject({ status: 422 });
    expect(await answer(server, id, 1, { choice: 'fine work', comment: 'short' })).toMatchObject({
      status: 200,
      body: { complete: true, answer: { choice: 'fine work', comment: 'short', skipped: false } },
    });
    expect(await total('verdict:"fine work"')).toBe(1);
    const { body } = await ask('GET', `/v1/annotations?rollout=${item!.rollouts[0]}`);
    expect(body.annotations).toMatchObject([{ verdict: 'fine work', note: 'short', queue: { id, name: 'a queue' } }]);
    expect(await ask('DELETE', `/v1/annotations/${body.annotations[0].id}`)).toMatchObject({
      status: 409,
      body: { code: 'annotation_of_review' },
    });
    const second = await next(server, id);
    expect(second.item).toMatchObject({ position: 2, previous: 1 });
    await answer(server, id, 1, { choice: 'poor' });
    expect([await total('verdict:"fine work"'), await total('verdict:poor')]).toEqual([0, 1]);
    expect((await ask('GET', `/v1/review-queues/${id}`)).body).toMatchObject({ items: 4, complete: 1, answers: 1, choices: { poor: 1 } });
    await ask('DELETE', `/v1/review-queues/${id}`);
    expect(await total('verdict:poor')).toBe(0);
  });

  it('of a pair mark the better and the worse rollout', async () => {
    const { id } = await createQueue(server, { run: RUN, query: 'step:1', mode: 'pairs' });
    const chosen = ['a', 'b', 'tie'];
    const seen = await answerAll(server, id, ({ position }) => chosen[position - 1]!);
    expect(seen).toHaveLength(6);
    const verdicts = await Promise.all(
      seen.map(async (rollout) => (await ask('GET', `/v1/annotations?rollout=${rollout}`)).body.annotations[0].verdict),
    );
    expect(verdicts).toEqual(['chosen', 'rejected', 'rejected', 'chosen', 'tied', 'tied']);
    expect(await Promise.all(['verdict:chosen', 'verdict:rejected', 'verdict:tied'].map(total))).toEqual([2, 2, 2]);
    await ask('DELETE', `/v1/review-queues/${id}`);
  });

  it('of others stay hidden until the item is complete', async () => {
    const { id } = await createQueue(server, { run: RUN, query: 'step:0 task:1', overlap: 2 });
    const { item } = await next(server, id, ana);
    await answer(server, id, 1, { choice: 'bad', comment: 'looped' }, ana);
    const hidden = await ask('GET', `/v1/review-queues/${id}/items/1`, undefined, ben.headers);
    expect(hidden.body).toMatchObject({ complete: false, others: [] });
    expect(await total('verdict:bad')).toBe(0);
    expect((await ask('GET', `/v1/annotations?rollout=${item!.rollouts[0]}`)).body.annotations).toEqual([]);
    expect((await next(server, id, ben)).item).toMatchObject({ position: 1 });
    expect((await answer(server, id, 1, { choice: 'good' }, ben)).body).toMatchObject({
      complete: true,
      others: [{ reviewer: expect.stringMatching(/^ana/), choice: 'bad', comment: 'looped' }],
    });
    expect([await total('verdict:bad'), await total('verdict:good')]).toEqual([1, 1]);
    // Closing shows the answers of incomplete items too.
    await answer(server, id, 2, { choice: 'exploit' }, ana);
    expect(await total('verdict:exploit')).toBe(0);
    expect(await ask('POST', `/v1/review-queues/${id}/close`, undefined, ben.headers)).toMatchObject({
      status: 403,
      body: { code: 'owner_required' },
    });
    expect((await ask('POST', `/v1/review-queues/${id}/close`)).body).toMatchObject({ closed_at: expect.any(String), can_review: false });
    expect(await total('verdict:exploit')).toBe(1);
    expect(await answer(server, id, 2, { choice: 'good' }, ana)).toMatchObject({ status: 409, body: { code: 'review_queue_closed' } });
    expect(await ask('POST', `/v1/review-queues/${id}/next`, {}, ana.headers)).toMatchObject({ status: 409 });
    // Closing again changes nothing.
    expect((await ask('POST', `/v1/review-queues/${id}/close`)).status).toBe(200);
    expect(await total('verdict:exploit')).toBe(1);
    await ask('DELETE', `/v1/review-queues/${id}`);
  });

  it('may be skipped and taken up again', async () => {
    const { id } = await createQueue(server, { run: RUN, query: 'step:0 task:2', sample: 2 });
    await next(server, id);
    expect((await answer(server, id, 1, { choice: null })).body).toMatchObject({
      answer: { choice: null, skipped: true },
      complete: false,
    });
    expect((await next(server, id)).item).toMatchObject({ position: 2, previous: 1 });
    await answer(server, id, 2, { choice: 'good' });
    expect(await next(server, id)).toEqual({ item: null, items: 2, complete: 1, answered: 1, skipped: 1 });
    expect((await next(server, id, undefined, true)).item).toMatchObject({ position: 1 });
    await answer(server, id, 1, { choice: 'bad' });
    expect(await next(server, id, undefined, true)).toEqual({ item: null, items: 2, complete: 2, answered: 2, skipped: 0 });
    await ask('DELETE', `/v1/review-queues/${id}`);
  });
});

describe('reviewers', () => {
  it('who ask at the same time never get an item more often than it needs answers', async () => {
    const people = [ana, ben, ...(await Promise.all(['cleo', 'dan', 'eva', 'fay'].map((name) => addReviewer(server, name))))];
    const { id } = await createQueue(server, { run: RUN, sample: 20, overlap: 2 });
    for (let round = 0; round < 4; round += 1) {
      const got = await Promise.all(people.map((reviewer) => next(server, id, reviewer)));
      const { rows } = await server.database.pool.query(
        'SELECT position, count(*)::int AS n FROM review_answers WHERE queue_id = $1 GROUP BY position',
        [id],
      );
      for (const row of rows) expect(row).toMatchObject({ n: 2 });
      await Promise.all(people.map((reviewer, at) => answer(server, id, got[at]!.item!.position, { choice: 'good' }, reviewer)));
    }
    await Promise.all(people.map((reviewer) => answerAll(server, id, () => 'good', reviewer)));
    const { body } = await ask('GET', `/v1/review-queues/${id}`);
    expect(body).toMatchObject({ items: 20, complete: 20, answers: 40, choices: { good: 40 }, agreement: { alpha: null, items: 20 } });
    expect(body.progress.reduce((sum: number, { answered }: { answered: number }) => sum + answered, 0)).toBe(40);
    await ask('DELETE', `/v1/review-queues/${id}`);
  });

  it('lose an item when their reservation ends and another answers', async () => {
    const { id } = await createQueue(server, { run: RUN, sample: 1 });
    expect((await next(server, id, ana)).item).toMatchObject({ position: 1 });
    // Asking again gives the same item.
    expect((await next(server, id, ana)).item).toMatchObject({ position: 1 });
    expect((await next(server, id, ben)).item).toBeNull();
    expect(await answer(server, id, 1, { choice: 'good' }, ben)).toMatchObject({ status: 409, body: { code: 'review_item_taken' } });
    await server.database.pool.query(`UPDATE review_answers SET claimed_until = now() - interval '1 s' WHERE queue_id = $1`, [id]);
    expect((await next(server, id, ben)).item).toMatchObject({ position: 1 });
    expect(await answer(server, id, 1, { choice: 'bad' }, ana)).toMatchObject({ status: 409 });
    expect(await answer(server, id, 1, { choice: 'good' }, ben)).toMatchObject({ status: 200 });
    await ask('DELETE', `/v1/review-queues/${id}`);
  });

  it('are those of the queue only', async () => {
    const { id } = await createQueue(server, { run: RUN, sample: 2, reviewers: [ana.id] });
    expect(await ask('POST', `/v1/review-queues/${id}/next`, {}, ben.headers)).toMatchObject({ status: 403, body: { code: 'forbidden' } });
    expect(await answer(server, id, 1, { choice: 'good' }, ben)).toMatchObject({ status: 403 });
    expect((await ask('GET', `/v1/review-queues/${id}`, undefined, ben.headers)).body).toMatchObject({
      can_review: false,
      can_manage: false,
      reviewers: [{ id: ana.id }],
    });
    expect((await next(server, id, ana)).item).toMatchObject({ position: 1 });
    expect(await ask('DELETE', `/v1/review-queues/${id}`, undefined, ana.headers)).toMatchObject({ status: 403 });
    expect(await ask('DELETE', `/v1/review-queues/${id}`)).toMatchObject({ status: 200 });
  });

  it('of other organisations see nothing', async () => {
    const { id } = await createQueue(server, { run: RUN, sample: 1 });
    for (const [method, path, body] of [
      ['GET', '', undefined],
      ['DELETE', '', undefined],
      ['POST', '/close', undefined],
      ['POST', '/next', {}],
      ['GET', '/items/1', undefined],
      ['PUT', '/items/1', { choice: 'good' }],
    ] as const)
      expect([method, path, await ask(method, `/v1/review-queues/${id}${path}`, body, stranger)]).toMatchObject([
        method,
        path,
        { status: 404, body: { code: 'review_queue_not_found' } },
      ]);
    expect((await ask('GET', '/v1/review-queues', undefined, stranger)).body).toEqual({ queues: [] });
    expect(await ask('POST', '/v1/review-queues', { name: 'q', run: RUN }, stranger)).toMatchObject({
      status: 404,
      body: { code: 'run_not_found' },
    });
    for (const position of ['2', '0', 'x', '99999999999'])
      expect(await answer(server, id, position, { choice: 'good' })).toMatchObject({
        status: 404,
        body: { code: 'review_item_not_found' },
      });
    await ask('DELETE', `/v1/review-queues/${id}`);
  });

  it('agree by alpha, with an interval', async () => {
    const { id } = await createQueue(server, { run: RUN, sample: 10, overlap: 2 });
    // Krippendorff 2011, section A: alpha = .095.
    const [meg, owen] = ['0100000010', '1110010000'];
    await answerAll(server, id, ({ position }) => (meg[position - 1] === '1' ? 'bad' : 'good'), ana);
    await answerAll(server, id, ({ position }) => (owen[position - 1] === '1' ? 'bad' : 'good'), ben);
    const { agreement, progress } = (await ask('GET', `/v1/review-queues/${id}`)).body;
    expect(agreement).toMatchObject({ alpha: expect.closeTo(0.095, 3), items: 10 });
    expect(agreement.low).toBeLessThan(0.095);
    expect(agreement.high).toBeGreaterThan(0.095);
    expect(progress).toMatchObject([{ answered: 10 }, { answered: 10 }]);
    const { queues } = (await ask('GET', '/v1/review-queues')).body;
    expect(queues.find((queue: { id: string }) => queue.id === id).agreement).toMatchObject({ alpha: agreement.alpha, low: null });
    await ask('DELETE', `/v1/review-queues/${id}`);
  });
});

describe('agreement', () => {
  it('counts only items with two answers or more, from any reviewers', async () => {
    const cleo = await addReviewer(server, 'cleo');
    const { id } = await createQueue(server, { run: RUN, sample: 6, overlap: 3, labels: ['a', 'b', 'c'] });
    // One row per item, one column per reviewer: Ana answers all, Ben skips two, Cleo stops after three items.
    const answers = ['aaa', 'ab-', 'b-b', 'bb', 'c', 'cc'];
    const review = async (column: number, reviewer: Reviewer, items: number) => {
      for (const row of answers.slice(0, items)) {
        const { item } = await next(server, id, reviewer);
        const choice = row[column] ?? '-';
        await answer(server, id, item!.position, { choice: choice === '-' ? null : choice }, reviewer);
      }
    };
    await review(0, ana, 6);
    expect((await ask('GET', `/v1/review-queues/${id}`)).body.agreement).toEqual({ alpha: null, low: null, high: null, items: 0 });
    await review(1, ben, 6);
    await review(2, cleo, 3);
    const { agreement, answers: given, complete } = (await ask('GET', `/v1/review-queues/${id}`)).body;
    // Pairable values a 4, b 5, c 2 of n = 11, of which one item with a and b disagrees: 1 - 10 * 2 / (121 - 45).
    expect({ ...agreement, given, complete }).toMatchObject({
      alpha: expect.closeTo(1 - (10 * 2) / 76, 9),
      items: 5,
      given: 12,
      complete: 1,
    });
    await ask('DELETE', `/v1/review-queues/${id}`);
  });

  it('does not exist when all answers are equal, or of one reviewer', async () => {
    const equal = await createQueue(server, { run: RUN, sample: 3, overlap: 2 });
    for (const reviewer of [ana, ben]) await answerAll(server, equal.id, () => 'good', reviewer);
    expect((await ask('GET', `/v1/review-queues/${equal.id}`)).body.agreement).toEqual({ alpha: null, low: null, high: null, items: 3 });
    const alone = await createQueue(server, { run: RUN, sample: 3 });
    await answerAll(server, alone.id, ({ position }) => (position === 1 ? 'bad' : 'good'), ana);
    expect((await ask('GET', `/v1/review-queues/${alone.id}`)).body.agreement).toEqual({ alpha: null, low: null, high: null, items: 0 });
    for (const { id } of [equal, alone]) await ask('DELETE', `/v1/review-queues/${id}`);
  });
});

describe('erased rollouts', () => {
  it('leave the queue without an error', async () => {
    const gone = 'reviewed and erased';
    const erased = seeded(gone, { steps: 1, tasks: 2, n: 2 });
    await upload(server, gone, erased);
    const queue = await createQueue(server, { run: gone, sample: 4 });
    const pairs = await createQueue(server, { run: gone, sample: 4, mode: 'pairs' });
    const { item } = await next(server, queue.id);
    await answerAll(server, pairs.id, () => 'a');
    expect(await ask('DELETE', `/v1/rollouts/${item!.rollouts[0]}`)).toMatchObject({ status: 200 });
    expect(await answer(server, queue.id, 1, { choice: 'good' })).toMatchObject({ status: 404, body: { code: 'review_item_not_found' } });
    expect(await next(server, queue.id)).toMatchObject({ item: { position: 2 }, items: 3 });
    // A pair goes with either rollout, and so does what was said of the other.
    expect((await ask('GET', `/v1/review-queues/${pairs.id}`)).body).toMatchObject({ items: 1, answers: 1 });
    const { rows } = await server.database.pool.query(
      `SELECT count(*)::int AS n FROM annotations a JOIN runs r ON r.seq = a.run_seq WHERE r.name = $1`,
      [gone],
    );
    expect(rows[0].n).toBe(2);
    expect(await ask('DELETE', `/v1/runs/${encodeURIComponent(gone)}`)).toMatchObject({ status: 200 });
    expect(await ask('GET', `/v1/review-queues/${queue.id}`)).toMatchObject({ status: 404 });
  });
});
