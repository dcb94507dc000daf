import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startStore, stores, type StoreWorld } from './sealing.world.ts';

/** Rollouts of which messages came and no start event: they are in no run. */
describe.each(stores)('rollouts without a start event, sealed into %s', (kind) => {
  let world: StoreWorld;
  beforeAll(async () => {
    world = await startStore(kind);
  });
  afterAll(() => world.server.close());

  const undated = (rollout: any) => ({ ...rollout, age_ms: 0, verified: null });
  const upload = async (count: number, word = 'quokka') => {
    const id = randomUUID();
    const messages = Array.from({ length: count }, (_, index) =>
      world.message(id, index, { content: `${word} ${index}`, isFinished: index === count - 1, reward: index === count - 1 ? 1 : null }),
    );
    await world.post(messages);
    return { id, messages };
  };
  const found = async (word: string) => {
    const { body } = await world.server.request('GET', `/v1/search?q=${word}`);
    return body.hits.map((hit: any) => [hit.rollout, hit.index]);
  };

  it('wait for their silence, also with a final message', async () => {
    const { id } = await upload(2);
    expect(await world.services(undefined, { finishedMs: 0, silentMs: 3_600_000 }).sealing.seal()).toMatchObject({ sealed: 0 });
    expect(await world.rowsOf(id)).toBe(2);
    expect(await world.services().sealing.seal()).toMatchObject({ sealed: 1, messages: 2, failed: 0 });
  });

  it('read the same before and after, and are sealed once', async () => {
    const rollouts = [await upload(1), await upload(7), await upload(450)];
    const only = randomUUID();
    await world.post([{ eventType: 'rollout_update', eventId: only, timestamp: Date.now(), rollout_info: { a: 1 } }]);
    const ids = [...rollouts.map(({ id }) => id), only];
    await world.silence(ids);
    const read = () => Promise.all(ids.map(async (id) => undated(await world.get(id))));
    const pages = () => Promise.all([0, 199, 440].map((from) => world.page(rollouts[2]!.id, from, 50)));
    const before = [await read(), await pages()];
    expect(await world.services().sealing.seal()).toMatchObject({ sealed: 3, messages: 458, failed: 0, away: false });
    expect(await Promise.all(ids.map(world.rowsOf))).toEqual([0, 0, 0, 0]);
    expect([await read(), await pages()]).toEqual(before);
    expect(await world.services().sealing.seal()).toMatchObject({ sealed: 0, failed: 0 });
    const again = await world.server.request('POST', '/v1/rollouts', {
      body: { events: [rollouts[1]!.messages[3], world.message(ids[1]!, 7)] },
    });
    expect(again.body).toMatchObject({ accepted: 1, duplicates: 1, conflicts: 0 });
    expect(await world.services().sealing.seal()).toMatchObject({ sealed: 1, messages: 8 });
    expect((await world.get(ids[1]!)).messages).toHaveLength(8);
  });

  it('are derived and searchable after a late start event', async () => {
    const [late, prompt] = [await upload(450, 'wombat'), await upload(3, 'numbat')];
    const twin = await upload(3, 'numbat');
    expect(await world.services().sealing.seal()).toMatchObject({ sealed: 3 });
    // One of them has a message in a row by then.
    await world.post([world.message(late.id, 450, { content: 'wombat 450' })]);
    await world.post([late.id, prompt.id].map((id) => world.start(id)));
    await world.settled();
    const sorted = async (word: string) => (await found(word)).toSorted((a: any, b: any) => a[1] - b[1]);
    expect(await sorted('numbat')).toEqual([0, 1, 2].map((index) => [prompt.id, index]));
    expect(await found('wombat%20449')).toEqual([[late.id, 449]]);
    expect(await found('wombat%20450')).toEqual([[late.id, 450]]);
    expect(await found(`wombat%200`)).toEqual([[late.id, 0]]);
    const { pool } = world.server.database;
    const derived = async (id: string) =>
      (await pool.query(`SELECT messages, calls, reward, finished, turns, gaps, bytes, tokens_out FROM rollouts WHERE id = $1`, [id])).rows;
    expect(await derived(prompt.id)).toMatchObject([{ messages: 3, calls: 2, reward: 1, finished: true, gaps: 0 }]);
    // The same as one whose start event came before anything was sealed.
    const never = await upload(3, 'numbat');
    await world.post([world.start(never.id)]);
    await world.settled();
    expect(await derived(never.id)).toEqual(await derived(prompt.id));
    expect(await derived(twin.id)).toEqual([]);
    const words = (id: string) =>
      pool.query(
        'SELECT s.index, s.words::text FROM rollout_search s JOIN rollout_heads h ON h.seq = s.rollout_seq WHERE h.id = $1 ORDER BY 1',
        [id],
      );
    expect((await words(prompt.id)).rows).toEqual((await words(never.id)).rows);
    expect(await world.seal()).toMatchObject({ sealed: 2, failed: 0 });
    expect((await world.get(late.id)).messages).toHaveLength(451);
  });
});
