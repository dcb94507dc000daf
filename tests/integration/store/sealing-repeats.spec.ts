import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BlobStore, BlobError } from '@palestra/blobs';
import { startStore, stores, type StoreWorld } from './sealing.world.ts';

/** What comes again, or comes late, for rollouts whose messages are transcripts by now. */
describe.each(stores)('events of rollouts sealed into %s', (kind) => {
  let world: StoreWorld;
  beforeAll(async () => {
    world = await startStore(kind);
  });
  afterAll(() => world.server.close());

  const send = async (events: unknown[]) => {
    const answer = await world.server.request('POST', '/v1/rollouts', { body: { events }, headers: { prefer: 'return=representation' } });
    expect(answer.status).toBe(200);
    const { accepted, duplicates, conflicts, results } = answer.body;
    return { accepted, duplicates, conflicts, told: results.map(({ status }: { status: string }) => status) };
  };
  /** Its start event and so many messages, sealed. */
  const sealed = async (count: number, more: object = {}, startsWith: object = {}) => {
    const id = randomUUID();
    const messages = Array.from({ length: count }, (_, index) => world.message(id, index, more));
    await world.post([world.start(id, startsWith), ...messages]);
    await world.seal();
    expect(await world.rowsOf(id)).toBe(0);
    return { id, messages };
  };
  const counted = async (id: string) => {
    const { messages, calls, bytes, output_chars, unsealed } = await world.head(id);
    return { messages, calls, bytes, output_chars, unsealed };
  };
  const undated = (rollout: any) => ({ ...rollout, age_ms: 0, verified: null });

  it('are duplicates when they are repeated, conflicts when they differ, and change nothing', async () => {
    const { id, messages } = await sealed(450, { reward: 0.1 + 0.2, name: 'ü' });
    await world.silence([id]);
    const before = [await counted(id), undated(await world.get(id)), await world.packOf(id)];
    expect(await send([messages[0], messages[449], messages[7]])).toEqual({
      accepted: 0,
      duplicates: 3,
      conflicts: 0,
      told: ['duplicate', 'duplicate', 'duplicate'],
    });
    for (const change of [{ content: 'other' }, { reward: 1 }, { index: 900 }, { type: 'user_message' }, { callId: 'other' }]) {
      expect(await send([{ ...messages[210]!, ...change }])).toMatchObject({ accepted: 0, conflicts: 1, told: ['conflict'] });
    }
    expect([await counted(id), undated(await world.get(id)), await world.packOf(id)]).toEqual(before);
    expect(await world.rowsOf(id)).toBe(0);
    expect(await world.seal()).toMatchObject({ sealed: 0, skipped: 0, failed: 0 });
    expect(await world.packOf(id)).toEqual(before[2]);
  });

  it('are distinguished in one batch of new, repeated and changed ones, also of other rollouts', async () => {
    const { id, messages } = await sealed(5);
    const [open, fresh] = [await world.upload(1), randomUUID()];
    const late = world.message(id, 5);
    const batch = [
      messages[1],
      late,
      { ...messages[2]!, content: 'changed' },
      world.message(open, 1),
      world.start(fresh),
      world.message(fresh, 0),
      { eventType: 'rollout_update', eventId: id, timestamp: Date.now(), rollout_info: { late: true } },
    ];
    expect((await send(batch)).told).toEqual(['duplicate', 'accepted', 'conflict', 'accepted', 'accepted', 'accepted', 'accepted']);
    expect(await counted(id)).toMatchObject({ messages: 6, unsealed: true });
    expect(await world.rowsOf(id)).toBe(1);
    // Read together as one by one: from a transcript and a row, and from rows only.
    const { reader } = world.services();
    await world.settled();
    const heads = await Promise.all([id, open, fresh].map((one) => world.head(one)));
    const together = await reader.messagesOfMany(heads);
    for (const head of heads) expect(together.get(head.seq)).toEqual(await reader.messages({ ...head, sealed: true }));
    expect(heads.map(({ seq }) => together.get(seq)!.map(({ index }) => index))).toEqual([[0, 1, 2, 3, 4, 5], [0, 1], [0]]);
    // By now it is in a row and in a transcript: both are known.
    expect((await send(batch.slice(0, 3))).told).toEqual(['duplicate', 'duplicate', 'conflict']);
    expect(await world.seal()).toMatchObject({ failed: 0, messages: 6 + 2 + 1 });
    expect(await counted(id)).toMatchObject({ messages: 6, unsealed: false });
    expect((await send(batch.slice(0, 3))).told).toEqual(['duplicate', 'duplicate', 'conflict']);
    expect((await world.get(id)).messages.map(({ index, content }: any) => [index, content])).toEqual(
      [...messages, late].map(({ index, content }) => [index, content]),
    );
  });

  it('are searchable beside a sealed message of the same index', async () => {
    const { id } = await sealed(2, { content: 'sealed axolotl' });
    const found = async (words: string) => {
      const { body } = await world.server.request('GET', `/v1/search?q=${encodeURIComponent(words)}`);
      return body.hits.map((hit: any) => [hit.rollout, hit.index]);
    };
    expect(await found('late axolotl')).toEqual([]);
    for (const content of ['late axolotl', 'later axolotl']) {
      await world.post([world.message(id, 1, { content })]);
      await world.settled();
    }
    const both = async () => [await found('sealed axolotl'), await found('late axolotl'), await found('later axolotl')];
    const all = [[0, 1].map((index) => [id, index]), [[id, 1]], [[id, 1]]];
    expect(await both()).toEqual(all);
    expect(await world.seal()).toMatchObject({ sealed: 1, messages: 4 });
    expect(await both()).toEqual(all);
  });

  it('are counted in their run', async () => {
    const runName = `counted ${randomUUID()}`;
    const { messages } = await sealed(3, {}, { runName });
    const counts = async () => {
      const { rows } = await world.server.database.pool.query(
        `SELECT c.duplicates::int, c.conflicts::int FROM ingest_counters c JOIN runs ON runs.seq = c.run_seq WHERE runs.name = $1`,
        [runName],
      );
      return rows[0];
    };
    await send([messages[0], { ...messages[1]!, content: 'x' }]);
    await expect.poll(counts).toEqual({ duplicates: 2, conflicts: 1 });
  });

  it('read only their chunk, and new ones read nothing', async () => {
    const { id, messages } = await sealed(2_000);
    const object = world.blobs as BlobStore & { get: BlobStore['get'] };
    const original = object.get;
    const lengths: number[] = [];
    const { size } = await world.blobs.head((await world.packOf(id))!);
    const counting = new Proxy(world.blobs, {
      get(target, name) {
        const value = (target as any)[name];
        if (name !== 'get') return typeof value === 'function' ? value.bind(target) : value;
        return (at: string, range: { start: number; end: number }, signal: AbortSignal) => {
          lengths.push(range.end - range.start + 1);
          return original.call(target, at, range, signal);
        };
      },
    });
    const find = (events: { eventId: string }[]) =>
      world.services(counting).findSealed(
        id,
        events.map(({ eventId }) => eventId),
      );
    expect(await find([world.message(id, 2_000), world.message(id, 2_001)])).toEqual([]);
    expect(lengths).toEqual([]);
    expect(await find([messages[1_500]!])).toEqual([messages[1_500]!.eventId]);
    expect(lengths).toHaveLength(1);
    expect(lengths[0]).toBeLessThan(size / 5);
  });

  it('wait while the object store is unavailable, and become rows when their transcript is lost', async () => {
    const { id, messages } = await sealed(3);
    const failing = (kindOfError: 'unavailable' | 'not_found') =>
      new Proxy(world.blobs, {
        get(target, name) {
          if (name === 'get') return () => Promise.reject(new BlobError(kindOfError, 'gone'));
          const value = (target as any)[name];
          return typeof value === 'function' ? value.bind(target) : value;
        },
      });
    const ids = messages.map(({ eventId }) => eventId);
    await expect(world.services(failing('unavailable')).findSealed(id, ids)).rejects.toMatchObject({ code: 'ingest_overloaded' });
    expect(await world.services(failing('unavailable')).findSealed(id, [randomUUID()])).toEqual([]);
    expect(await world.services(failing('not_found')).findSealed(id, ids)).toEqual([]);
  });

  it('are found in transcripts without fingerprints', async () => {
    const { id, messages } = await sealed(250);
    const { rowCount } = await world.server.database.pool.query(
      `UPDATE rollout_transcripts SET chunks = (SELECT json_agg(jsonb_set(chunk, '{4}', 'null'))::text FROM jsonb_array_elements(chunks::jsonb) chunk)
       WHERE rollout_seq = (SELECT seq FROM rollout_heads WHERE id = $1)`,
      [id],
    );
    expect(rowCount).toBe(1);
    expect((await send([messages[249], world.message(id, 250)])).told).toEqual(['duplicate', 'accepted']);
  });

  it('are stored once when the same batch is repeated during sealing', async () => {
    const id = randomUUID();
    const messages = Array.from({ length: 40 }, (_, index) => world.message(id, index));
    await world.post([world.start(id), ...messages]);
    let going = true;
    let seals = 0;
    const sealing = (async () => {
      while (going) {
        await world.settled();
        seals += (await world.services().sealing.seal()).sealed;
      }
    })();
    let before = 0;
    // A pass skips a rollout that grows meanwhile: only each third round adds a message, and later only one after a pass that sealed.
    for (let round = 0; round < 30 || (seals < 2 && round < 600); round += 1) {
      const grows = round % 3 === 0 && (round < 30 || seals > before);
      if (grows) before = seals;
      const late = grows ? world.message(id, messages.length) : messages.at(-1)!;
      const told = await Promise.all([send([...messages, late]), send([late, ...messages.slice(5, 20)])]);
      expect(told.reduce((sum, { accepted }) => sum + accepted, 0)).toBe(grows ? 1 : 0);
      expect(told.reduce((sum, { conflicts }) => sum + conflicts, 0)).toBe(0);
      if (grows) messages.push(late);
    }
    going = false;
    await sealing;
    expect(seals).toBeGreaterThan(1);
    await world.seal();
    expect(await counted(id)).toMatchObject({ messages: messages.length, unsealed: false });
    expect((await world.get(id)).messages.map(({ eventId }: any) => eventId)).toEqual(messages.map(({ eventId }) => eventId));
  });
});
