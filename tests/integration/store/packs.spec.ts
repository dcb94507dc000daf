import { randomUUID } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BlobStore } from '@palestra/blobs';
import { selectSmallPacks } from '../../../apps/api/src/store/storage/pack.sql.ts';
import { startStore, stores, type StoreWorld } from './sealing.world.ts';

/** Every two packs of a size are merged, and dirty ones at once. */
const EAGER = { targetBytes: 32 * 1024 * 1024, factor: 2, quietMs: 0 };

describe.each(stores)('packs in %s', (kind) => {
  let world: StoreWorld;
  beforeAll(async () => {
    world = await startStore(kind);
  });
  afterAll(() => world?.server.close());

  const query = async (sql: string, values: unknown[] = []) => (await world.server.database.pool.query(sql, values)).rows;
  const compact = (blobs: BlobStore = world.blobs) => world.services(blobs).compactor.compact(undefined, 0, EAGER);
  const keys = async () => {
    const { blobs } = await world.blobs.list({ prefix: 'orgs/', limit: 1000 });
    return blobs.map(({ key }) => key).filter((key) => key.endsWith('.jsonl.gz'));
  };
  const textOf = async (key: string) => gunzipSync(await buffer((await world.blobs.get(key)).body)).toString();
  const read = async (id: string): Promise<string[]> => (await world.get(id)).messages.map(({ content }: any) => content);
  /** Uploads and seals rollouts with these texts, all into one pack. Returns their ids. */
  async function sealed(runName: string, texts: readonly string[]): Promise<string[]> {
    const ids = texts.map(() => randomUUID());
    await world.post(ids.flatMap((id, at) => [world.start(id, { runName }), world.message(id, 0, { content: texts[at] })]));
    await world.seal();
    expect(await Promise.all(ids.map(world.rowsOf))).toEqual(ids.map(() => 0));
    return ids;
  }
  const erase = async (id: string) => {
    const { org_id } = await world.head(id);
    expect(await world.services().eraser.eraseRollout(org_id, id)).toBe(true);
  };

  it('lists packs by number, so that the next page begins after the last one', async () => {
    const client = await world.server.database.pool.connect();
    try {
      await client.query('BEGIN');
      const org = randomUUID();
      const ids = ['1000000008', '1000000009', '999999998', '999999999'];
      await client.query(
        `INSERT INTO transcript_packs (id, blob_key, org_id, run_seq, bytes, dirty_since) OVERRIDING SYSTEM VALUE
         SELECT id, 'orgs/' || $1 || '/packs/' || id, $1::uuid, 1, 1, NULL FROM unnest($2::bigint[]) id`,
        [org, ids],
      );
      const rule = { ...EAGER, without: [] };
      const page = (after: string) => selectSmallPacks(client, rule, { org_id: org, run_seq: 1, size_class: null }, after, 2);
      const first = (await page('0')).map(({ id }) => id);
      expect(first).toEqual(['999999998', '999999999']);
      expect((await page(first.at(-1)!)).map(({ id }) => id)).toEqual(['1000000008', '1000000009']);
    } finally {
      await client.query('ROLLBACK');
      client.release();
    }
  });
  /** Each object is a pack, each pack is an object with transcripts and nothing else. */
  async function expectConsistent(): Promise<void> {
    await world.services().garbage.sweep(undefined, 0);
    const packs = await query(
      'SELECT blob_key, bytes::int, (SELECT sum(bytes)::int FROM rollout_transcripts t WHERE t.pack = p.id) AS live FROM transcript_packs p',
    );
    expect(new Set(await keys())).toEqual(new Set(packs.map(({ blob_key }) => blob_key)));
    for (const { bytes, live } of packs) expect(live).toBe(bytes);
    expect(await query('SELECT FROM rollout_garbage')).toEqual([]);
  }

  it('of a run are merged, and an erased text is in no object after that', async () => {
    const runName = 'merged';
    const ids = [
      ...(await sealed(runName, ['one a', 'secret b'])),
      ...(await sealed(runName, ['three c'])),
      ...(await sealed(runName, ['four d'])),
    ];
    expect(new Set(await Promise.all(ids.map(world.packOf))).size).toBe(3);
    await erase(ids[1]!);
    expect((await world.server.request('GET', `/v1/rollouts/${ids[1]}`)).status).toBe(404);
    expect(await compact()).toMatchObject({ failed: 0, away: false });
    const left = [ids[0]!, ids[2]!, ids[3]!];
    const [pack, ...others] = new Set(await Promise.all(left.map(world.packOf)));
    expect(others).toEqual([]);
    const lines = (await textOf(pack!))
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(Object.fromEntries(lines.map(({ rollout_id, content }) => [rollout_id, content]))).toEqual(
      Object.fromEntries(left.map((id, at) => [id, ['one a', 'three c', 'four d'][at]])),
    );
    for (const key of await keys()) expect(await textOf(key)).not.toContain('secret b');
    expect(await Promise.all(left.map(read))).toEqual([['one a'], ['three c'], ['four d']]);
    await expectConsistent();
    // The next pass looks at the new pack once more.
    expect(await compact()).toEqual({ merged: 0, failed: 0, away: false });
    expect(await query('SELECT FROM transcript_packs WHERE merge_due')).toEqual([]);
  });

  it('keep erased and resealed rollouts out of a merge that is under way', async () => {
    const [gone, grown, stays] = [...(await sealed('meanwhile', ['gone', 'grown', 'stays']))] as [string, string, string];
    await sealed('meanwhile', ['other']);
    const interrupted = new Proxy(world.blobs, {
      get:
        (target, name: keyof BlobStore) =>
        async (...args: unknown[]) => {
          const answer = await (target[name] as any)(...args);
          if (name !== 'put') return answer;
          await erase(gone);
          await world.post([world.message(grown, 1, { content: 'late' })]);
          await world.seal();
          return answer;
        },
    });
    expect(await compact(interrupted)).toMatchObject({ failed: 0 });
    expect(await query('SELECT count(*)::int AS n FROM transcript_packs WHERE dirty_since IS NOT NULL')).toEqual([{ n: 1 }]);
    expect(await world.head(gone)).toBeUndefined();
    expect(await Promise.all([grown, stays].map(read))).toEqual([['grown', 'late'], ['stays']]);
    await compact();
    for (const key of await keys()) expect(await textOf(key)).not.toContain('"gone"');
    await expectConsistent();
  });

  it('are not reported as lost when another process merges them first', async () => {
    const ids = [...(await sealed('raced', ['a'])), ...(await sealed('raced', ['b']))];
    let raced = false;
    const slow = new Proxy(world.blobs, {
      get:
        (target, name: keyof BlobStore) =>
        async (...args: unknown[]) => {
          if (name === 'get' && !raced) {
            raced = true;
            expect((await compact()).merged).toBeGreaterThan(1);
          }
          return (target[name] as any)(...args);
        },
    });
    expect(await compact(slow)).toMatchObject({ failed: 0 });
    expect(raced).toBe(true);
    expect(await Promise.all(ids.map(read))).toEqual([['a'], ['b']]);
    await expectConsistent();
  });

  it('keep an object whose COMMIT had no answer', async () => {
    const ids = [...(await sealed('uncertain', ['a'])), ...(await sealed('uncertain', ['b']))];
    const { pool } = world.server.database;
    const connect = pool.connect.bind(pool);
    let lost = 0;
    // The first transaction of the merge: it is committed, and its client does not hear of it.
    (pool as any).connect = async (...args: any[]) => {
      if (args.length > 0) return (connect as any)(...args);
      const client = await connect();
      const send = client.query.bind(client) as any;
      let merges = false;
      (client as any).query = async (...sent: any[]) => {
        if (String(sent[0]?.text ?? sent[0]).includes('UPDATE rollout_transcripts')) merges = true;
        const answer = await send(...sent);
        if (sent[0] !== 'COMMIT' || !merges || lost > 0) return answer;
        lost += 1;
        throw new Error('Connection terminated unexpectedly');
      };
      const release = client.release.bind(client);
      client.release = (error?: any) => ((client.query = send), release(error));
      return client;
    };
    await compact().catch(() => {});
    (pool as any).connect = connect;
    expect(lost).toBe(1);
    expect(await Promise.all(ids.map(read))).toEqual([['a'], ['b']]);
    await compact();
    await expectConsistent();
  });

  it('that are lost or damaged stay, and others are merged', async () => {
    const texts = ['p', 'q', 'r', 's'];
    const ids: string[] = [];
    for (const text of texts) ids.push(...(await sealed('damaged', [text])));
    const key = (await world.packOf(ids[1]!))!;
    const body = await buffer((await world.blobs.get(key)).body);
    await world.blobs.delete(key);
    const { compactor } = world.services();
    expect(await compactor.compact(undefined, 0, EAGER)).toMatchObject({ failed: 1, away: false });
    // It is reported once.
    expect(await compactor.compact(undefined, 0, EAGER)).toMatchObject({ failed: 0, away: false });
    expect(new Set(await Promise.all([ids[0]!, ids[2]!, ids[3]!].map(world.packOf))).size).toBe(1);
    expect(await read(ids[3]!)).toEqual(['s']);
    await world.blobs.put(key, body, { contentType: 'application/gzip' });
    expect(await compact()).toMatchObject({ failed: 0 });
    expect(await Promise.all(ids.map(read))).toEqual(texts.map((text) => [text]));
    await expectConsistent();
  });

  it.each(['57014', 'XX001'])(
    'whose statements fail with %s keep no others from losing erased texts, and are copied later',
    async (state) => {
      const [gone, stays] = (await sealed(`failing ${state}`, ['gone', 'stays'])) as [string, string];
      const [secret, other] = (await sealed(`beside ${state}`, ['secret', 'other'])) as [string, string];
      await erase(gone);
      await erase(secret);
      const { seq } = (await query('SELECT seq::text FROM rollout_heads WHERE id = $1', [stays]))[0];
      await query(
        `CREATE FUNCTION fail_here() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = '${state}'; END $$`,
      );
      await query(
        `CREATE TRIGGER fail BEFORE UPDATE ON rollout_transcripts FOR EACH ROW WHEN (NEW.rollout_seq = ${seq}) EXECUTE FUNCTION fail_here()`,
      );
      const { compactor } = world.services();
      try {
        expect(await compactor.compact(undefined, 0, EAGER)).toMatchObject({ failed: 1, away: false });
      } finally {
        await query('DROP FUNCTION fail_here CASCADE');
      }
      expect(await textOf((await world.packOf(other))!)).not.toContain('secret');
      expect(await textOf((await world.packOf(stays))!)).toContain('gone');
      expect(await compactor.compact(undefined, 0, EAGER)).toMatchObject({ failed: 0 });
      expect(await textOf((await world.packOf(stays))!)).not.toContain('gone');
      expect(await Promise.all([stays, other].map(read))).toEqual([['stays'], ['other']]);
      await expectConsistent();
    },
  );

  it('replace objects from before packs, whose lines then have the id of their rollout', async () => {
    const [id] = (await sealed('old', ['a\u2028{"x": 1}\u2029{'])) as [string];
    const key = (await world.packOf(id))!;
    const { org_id, seq } = await world.head(id);
    const old = `orgs/${org_id}/rollouts/${id.slice(0, 2)}/${id}/transcript-1-00000000.jsonl.gz`;
    const line = (await textOf(key)).replace(/^\{"rollout_id":"[^"]+",/, '{');
    const body = gzipSync(line);
    await world.blobs.put(old, body, { contentType: 'application/gzip' });
    await query(
      `WITH t AS (UPDATE rollout_transcripts SET bytes = $2::bigint, chunks = jsonb_set(chunks::jsonb, '{0,3}', to_jsonb($2::bigint))::text WHERE rollout_seq = $1 RETURNING pack)
       UPDATE transcript_packs p SET blob_key = $3, bytes = $2::bigint FROM t WHERE p.id = t.pack`,
      [seq, body.length, old],
    );
    await world.blobs.delete(key);
    const before = await read(id);
    expect(await compact()).toMatchObject({ failed: 0 });
    expect(await world.packOf(id)).toContain('/packs/');
    expect(JSON.parse(await textOf((await world.packOf(id))!))).toMatchObject({ rollout_id: id, content: before[0] });
    expect(await read(id)).toEqual(before);
    await expectConsistent();
  });

  it('give every reader all messages in any order of sealing, late events, merging and erasing', { timeout: 120_000 }, async () => {
    const expected = new Map<string, string[]>();
    const erased: string[] = [];
    let going = true;
    let reads = 0;
    const reading = (async () => {
      while (going) {
        const [id] = [...expected.keys()].toSorted(() => Math.random() - 0.5);
        if (id === undefined) {
          await new Promise((resolve) => setTimeout(resolve, 5));
          continue;
        }
        const acknowledged = expected.get(id)!.length;
        const answer = await world.server.request('GET', `/v1/rollouts/${id}`);
        if (answer.status === 404) expect(erased).toContain(id);
        // One that is erased during the read may have lost its messages.
        else if (!erased.includes(id)) expect((answer.body as any).messages.length).toBeGreaterThanOrEqual(acknowledged);
        reads += 1;
      }
    })();
    const actions = [
      async () => {
        const texts = Array.from({ length: 3 }, () => `text ${randomUUID()}`);
        (await sealed('random', texts)).forEach((id, at) => expected.set(id, [texts[at]!]));
      },
      async () => {
        for (const [id, texts] of [...expected].slice(0, 2)) {
          const content = `late ${randomUUID()}`;
          await world.post([world.message(id, texts.length, { content })]);
          expected.set(id, [...texts, content]);
        }
        await world.seal();
      },
      async () => {
        const [id] = [...expected.keys()].slice(-2);
        if (id === undefined) return;
        erased.push(id);
        const texts = expected.get(id)!;
        expected.delete(id);
        erased.push(...texts);
        await erase(id);
      },
      async () => expect((await compact()).failed).toBe(0),
    ];
    for (let round = 0; round < 24; round += 1) await actions[round < 4 ? 0 : Math.floor(Math.random() * actions.length)]!();
    // Two processes at a time.
    await Promise.all([compact(), compact(), actions[2]!(), world.services().sealing.seal()]);
    going = false;
    await reading;
    expect(reads).toBeGreaterThan(0);
    await world.services().sealing.seal();
    await compact();
    for (const [id, texts] of expected) expect(await read(id)).toEqual(texts);
    const everything = (await Promise.all((await keys()).map(textOf))).join('');
    for (const text of erased) expect(everything).not.toContain(text);
    await expectConsistent();
  });
});
