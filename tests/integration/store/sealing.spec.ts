import { randomUUID } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BlobStore, S3BlobStore } from '@palestra/blobs';
import { startFaultProxy } from '../../support/fault-proxy.ts';
import { freePort } from '@palestra/hosting';
import { startStore, stores, type StoreWorld } from './sealing.world.ts';

/** The store with some methods replaced; the others are its own. */
const altered = (blobs: BlobStore, changes: Partial<BlobStore>): BlobStore =>
  new Proxy(blobs, {
    get(target, name) {
      const value = (changes as any)[name] ?? (target as any)[name];
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });

describe.each(stores)('sealing into %s', (kind) => {
  let world: StoreWorld;
  beforeAll(async () => {
    world = await startStore(kind);
  });
  afterAll(() => world.server.close());

  /** Keys of all transcripts of the organisation, of which tests compare the change. */
  const packs = async () =>
    (await world.blobs.list({ prefix: 'orgs/', limit: 1000 })).blobs.map(({ key }) => key).filter((key) => key.includes('/packs/'));
  const known = async () =>
    (await world.server.database.pool.query('SELECT blob_key FROM transcript_packs')).rows.map((row) => row.blob_key);
  const garbage = async () =>
    (await world.server.database.pool.query('SELECT blob_key FROM rollout_garbage')).rows.map((row) => row.blob_key);

  it('changes no body, no page and no figure', async () => {
    const ids = [await world.upload(1), await world.upload(7), await world.upload(450), await world.upload(0)];
    await world.post([
      world.message(ids[1]!, 7, {
        content: 'x'.repeat(2_000_000),
        isFinished: true,
        reward: 0.1 + 0.2,
        metadata: { big: 12345678901234567890n.toString() },
      }),
    ]);
    await world.settled();
    await world.silence(ids);
    const before = await Promise.all(ids.map(world.get));
    const pages = [
      [0, 1],
      [199, 3],
      [200, 200],
      [440, 50],
      [451, 5],
    ] as const;
    const pagesBefore = await Promise.all(pages.map(([from, limit]) => world.page(ids[2]!, from, limit)));
    expect(await world.seal()).toMatchObject({ sealed: 3, messages: 1 + 8 + 450, skipped: 0, failed: 0, away: false });
    expect(await Promise.all(ids.map(world.rowsOf))).toEqual([0, 0, 0, 0]);
    // Its age, and the match with the session ledger, change by themselves.
    const undated = (rollout: any) => ({ ...rollout, age_ms: 0, verified: null });
    expect((await Promise.all(ids.map(world.get))).map(undated)).toEqual(before.map(undated));
    expect(await Promise.all(pages.map(([from, limit]) => world.page(ids[2]!, from, limit)))).toEqual(pagesBefore);
    expect(await garbage()).toEqual([]);
    expect(await world.seal()).toMatchObject({ sealed: 0, failed: 0 });
  });

  it('writes standard gzipped JSON lines', async () => {
    const id = await world.upload(300);
    await world.seal();
    const { org_id } = await world.head(id);
    const key = await world.packOf(id);
    expect(key).toMatch(new RegExp(`^orgs/${org_id}/packs/[0-9a-f-]{36}\\.jsonl\\.gz$`));
    const { body } = await world.blobs.get(key!);
    const lines = gunzipSync(await buffer(body))
      .toString()
      .trimEnd()
      .split('\n');
    expect(lines.map((line) => JSON.parse(line).index)).toEqual(Array.from({ length: 300 }, (_, index) => index));
    expect(JSON.parse(lines[3]!)).toMatchObject({
      rollout_id: id,
      type: 'tool_result',
      name: 'tool',
      call_id: 'c3',
      metadata: { at: 3, list: [1, null] },
      sent_at: 1_700_000_000_003,
    });
  });

  it('reads one range for a page of ten thousand messages', async () => {
    const id = await world.upload(10_000);
    await world.seal();
    const ranges: number[] = [];
    const counting = altered(world.blobs, {
      get(key, range, signal) {
        ranges.push(range!.end! - range!.start + 1);
        return world.blobs.get(key, range, signal);
      },
    });
    const head = await world.head(id);
    const rows = await world.services(counting).reader.messages({ ...head, sealed: true }, { from: 9_000, limit: 100 });
    expect(rows.map(({ index }) => index)).toEqual(Array.from({ length: 100 }, (_, at) => 9_000 + at));
    const { size } = await world.blobs.head((await world.packOf(id))!);
    expect(ranges).toHaveLength(1);
    expect(ranges[0]).toBeLessThan(size / 10);
  });

  it('merges late events into every read, and then into one new object', async () => {
    const id = randomUUID();
    const first = Array.from({ length: 210 }, (_, index) => world.message(id, index * 2));
    await world.post([world.start(id), ...first]);
    const { reader } = world.services();
    await world.seal();
    const old = await world.packOf(id);
    const late = [1, 3, 211, 900].map((index) => world.message(id, index, { content: `late ${index}` }));
    // One is sent again with other content, at another place: what was acknowledged first stays, once.
    const repeated = [
      { ...first[5]!, content: 'changed' },
      { ...first[6]!, index: 901, content: 'moved' },
    ];
    await world.post([...late, ...repeated]);
    const expected = [...first, ...late].toSorted((a, b) => a.index - b.index).map(({ eventId, content }) => ({ eventId, content }));
    const seen = async () => (await world.get(id)).messages.map(({ eventId, content }: any) => ({ eventId, content }));
    expect(await seen()).toEqual(expected);
    expect((await world.page(id, 2, 4)).messages.map(({ index }: any) => index)).toEqual([2, 3, 4, 6]);
    const head = await world.head(id);
    expect(head).toMatchObject({ unsealed: true });
    expect((await reader.skeletons([{ ...head, sealed: true }])).get(head.seq)).toHaveLength(214);
    expect(await world.seal()).toMatchObject({ sealed: 1, messages: 214 });
    expect(await seen()).toEqual(expected);
    expect(await world.packOf(id)).not.toBe(old);
    expect(await packs()).not.toContain(old);
    expect(await world.rowsOf(id)).toBe(0);
    const chars = [...first, ...late].filter(({ type }) => type === 'tool_call').reduce((sum, { content }) => sum + content.length, 0);
    expect(await world.head(id)).toMatchObject({ unsealed: false, messages: 214, output_chars: String(chars) });
    expect(await garbage()).toEqual([]);
  });

  it('derives the same from a transcript as from rows', async () => {
    const [named, nameless] = [await world.upload(230), randomUUID()];
    const prompted = [
      world.message(nameless, 0, { type: 'system_message', content: 'You solve.' }),
      world.message(nameless, 1, { type: 'user_message', content: 'What is 1 + 1?' }),
      world.message(nameless, 2, { type: 'assistant_message', content: '2', reward: 1, isFinished: true }),
    ];
    await world.post([world.start(nameless), ...prompted]);
    await world.settled();
    const { pool } = world.server.database;
    const derived = async () =>
      (
        await pool.query(
          `SELECT to_jsonb(r) - '{revision,verdict,latency_ms}'::text[] AS row FROM rollouts r WHERE id = ANY($1::uuid[]) ORDER BY seq`,
          [[named, nameless]],
        )
      ).rows;
    const before = await derived();
    expect(before.map(({ row }) => typeof row.task_id)).toContain('number');
    await world.seal();
    await pool.query('UPDATE rollout_heads SET dirty = true, revision = revision + 1 WHERE id = ANY($1::uuid[])', [[named, nameless]]);
    await world.settled();
    expect(await world.rowsOf(nameless)).toBe(0);
    expect(await derived()).toEqual(before);
  });

  it('leaves a rollout that grew to the next pass', async () => {
    const id = await world.upload(5);
    const before = await packs();
    const growing = altered(world.blobs, {
      async put(...args) {
        const info = await world.blobs.put(...args);
        await world.post([world.message(id, 5)]);
        return info;
      },
    });
    expect(await world.seal(growing)).toMatchObject({ sealed: 0, skipped: 1 });
    expect(await world.rowsOf(id)).toBe(6);
    expect(await packs()).toEqual(before);
    expect(await world.seal()).toMatchObject({ sealed: 1, messages: 6 });
    expect((await world.get(id)).messages).toHaveLength(6);
  });

  it('loses nothing when two processes seal the same rollouts', async () => {
    const ids = await Promise.all(Array.from({ length: 30 }, () => world.upload(3)));
    await world.settled();
    // On a busy machine a rollout may not be quiet yet, and a statement or the object store may not answer in time: the next pass takes it.
    let [sealed, failed] = [0, 0];
    for (const deadline = Date.now() + 60_000; sealed < 30 && Date.now() < deadline;) {
      for (const pass of await Promise.all([world.services().sealing.seal(), world.services().sealing.seal()])) {
        sealed += pass.sealed;
        failed += pass.failed;
      }
    }
    expect(sealed, `${failed} attempts failed`).toBe(30);
    for (const id of ids) {
      expect((await world.get(id)).messages).toHaveLength(3);
      expect(await packs()).toContain(await world.packOf(id));
    }
    await world.services().garbage.sweep(undefined, 0);
    expect(new Set(await packs())).toEqual(new Set(await known()));
  });

  it('leaves no object of the slower process when a faster one sealed and cleaned up first', async () => {
    const ids = [await world.upload(3), await world.upload(400)];
    const slow = altered(world.blobs, {
      async put(...args) {
        await world.services().sealing.seal();
        return world.blobs.put(...args);
      },
    });
    expect(await world.seal(slow)).toMatchObject({ sealed: 0, failed: 0 });
    for (const id of ids) expect((await world.get(id)).messages.length).toBeGreaterThan(0);
    expect(new Set(await packs())).toEqual(new Set(await known()));
    expect(await garbage()).toEqual([]);
  });

  it('waits for an unavailable object store with growing delays, and continues when it is back', async () => {
    const ids = [await world.upload(3), await world.upload(400)];
    await world.settled();
    const proxy = await startFaultProxy({ targets: [await freePort()] });
    const dead = new S3BlobStore({ endpoint: proxy.url, bucket: 'b', region: 'us-east-1', accessKeyId: 'k', secretAccessKey: 's' });
    let current: BlobStore = dead;
    const switching = new Proxy({} as BlobStore, { get: (_target, name) => (current as any)[name].bind(current) });
    const { sealing, garbage: sweeper } = world.services(switching);
    expect(await sealing.seal()).toMatchObject({ sealed: 0, away: true });
    const { connections } = proxy.counts;
    expect(connections).toBeGreaterThan(0);
    expect(await sealing.seal()).toMatchObject({ sealed: 0, away: true });
    expect(proxy.counts.connections).toBe(connections);
    expect(await Promise.all(ids.map(world.rowsOf))).toEqual([3, 400]);
    expect((await world.get(ids[1]!)).messages).toHaveLength(400);
    await proxy.close();
    current = world.blobs;
    // What somebody else holds in that moment is left to the next pass.
    let sealed = 0;
    await expect.poll(async () => (sealed += (await sealing.seal()).sealed), { interval: 500 }).toBe(2);
    await sweeper.sweep(undefined, 0);
    expect(await garbage()).toEqual([]);
    expect(await Promise.all(ids.map(async (id) => (await world.get(id)).messages.length))).toEqual([3, 400]);
  });

  it('deletes an object that a crash left without a pointer', async () => {
    const id = await world.upload(4);
    await world.settled();
    const crashing = altered(world.blobs, {
      async put(...args) {
        await world.blobs.put(...args);
        // As seen by the database: everything after this never happened.
        throw Object.assign(new Error('killed'), { code: '57P01' });
      },
    });
    await expect(world.services(crashing).sealing.seal()).rejects.toThrow('killed');
    const [key] = await garbage();
    expect(await packs()).toContain(key);
    expect(await world.rowsOf(id)).toBe(4);
    const { sealing, garbage: sweeper } = world.services();
    await sealing.seal();
    await sweeper.sweep(undefined, 0);
    expect(new Set(await packs())).toEqual(new Set(await known()));
    expect(await garbage()).toEqual([]);
    expect((await world.get(id)).messages).toHaveLength(4);
  });

  it('seals many small rollouts at a time', { timeout: 180_000 }, async () => {
    const count = 500;
    const ids = Array.from({ length: count }, () => randomUUID());
    const words = 'the quick brown fox jumps over a lazy dog while solving this equation step by step'.split(' ');
    const text = (seed: number) => Array.from({ length: 150 }, (_, at) => words[(seed * 31 + at * at * 7 + at) % words.length]).join(' ');
    for (let at = 0; at < count; at += 50) {
      await world.post(
        ids
          .slice(at, at + 50)
          .flatMap((id, n) => [
            world.start(id),
            ...Array.from({ length: 10 }, (_, index) => world.message(id, index, { content: text(at + n + index) })),
          ]),
      );
    }
    await world.settled();
    const started = performance.now();
    const total = { sealed: 0, messages: 0 };
    // A rollout that somebody else holds in that moment is left to the next pass.
    for (let passes = 0; passes < 10 && total.sealed < count; passes += 1) {
      const pass = await world.seal();
      total.sealed += pass.sealed;
      total.messages += pass.messages;
    }
    const seconds = (performance.now() - started) / 1000;
    expect(total).toEqual({ sealed: count, messages: count * 10 });
    const { rows } = await world.server.database.pool.query(
      'SELECT sum(h.bytes)::float8 AS raw, sum(t.bytes)::float8 AS packed FROM rollout_heads h JOIN rollout_transcripts t ON t.rollout_seq = h.seq WHERE h.id = ANY($1::uuid[])',
      [ids],
    );
    console.log(`${kind}: ${Math.round(count / seconds)} rollouts/s sealed, ${(rows[0].raw / rows[0].packed).toFixed(1)} : 1`);
  });
});
