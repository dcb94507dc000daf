import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BlobStore } from '@palestra/blobs';
import { addJob } from '../../../apps/api/src/jobs/job-queue.sql.ts';
import { eraseRollouts } from '../../../apps/api/src/store/storage/erase.sql.ts';
import { selectStrays } from '../../../apps/api/src/store/storage/retention.sql.ts';
import { startStore, stores, type StoreWorld } from './sealing.world.ts';

describe.each(stores)('erasing with objects in %s', (kind) => {
  let world: StoreWorld;
  beforeAll(async () => {
    world = await startStore(kind);
    // The service itself erases every minute. A job that waits keeps its time: here the tests erase.
    const runAt = new Date(Date.now() + 3_600_000);
    const job = { name: 'erase', payload: {}, key: 'every:erase', runAt, maxAttempts: 1, serialKey: 'every:erase', keepTime: false };
    await addJob(world.server.database.pool, job);
  });
  afterAll(() => world.server.close());

  const query = async (sql: string, values: unknown[] = []) => (await world.server.database.pool.query(sql, values)).rows;
  const objects = async () => (await world.blobs.list({ prefix: 'orgs/' })).blobs.map(({ key }) => key);

  /** Rows of every table that has such a column, be it one that a later migration adds. The lake's go with its own next pass (docs/lake.md). */
  async function rowsBy(column: 'rollout_seq' | 'run_seq', value: string | number): Promise<Record<string, number>> {
    const tables = await query(
      `SELECT c.table_name AS name FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
       WHERE c.table_schema = 'public' AND c.column_name = $1 AND t.table_type = 'BASE TABLE' AND c.table_name <> 'rollout_garbage' AND c.table_name NOT LIKE 'lake%' ORDER BY 1`,
      [column],
    );
    const counts: Record<string, number> = {};
    for (const { name } of tables)
      counts[name] = (await query(`SELECT count(*)::int AS n FROM ${name} WHERE ${column} = $1`, [value]))[0].n;
    return counts;
  }
  const total = (counts: Record<string, number>) => Object.values(counts).reduce((sum, count) => sum + count, 0);

  /** A rollout with a row wherever a rollout can have one, and three kinds of objects; a message that is an object itself only if `large`. */
  async function full(
    runName: string,
    { large = true }: { large?: boolean } = {},
  ): Promise<{ id: string; seq: string; runSeq: number; runId: string; orgId: string }> {
    const id = randomUUID();
    const picture = `data:image/png;base64,${Buffer.alloc(6_000, 7).toString('base64')}`;
    await world.post([
      world.start(id, { runName, metadata: { task_index: 3 } }),
      world.message(id, 0, { content: picture }),
      world.message(id, 1, { content: 'y'.repeat(large ? 9_000_000 : 9), reward: 1 }),
      world.message(id, 2, { isFinished: true }),
    ]);
    await world.seal();
    await world.post([world.message(id, 3, { content: 'late' })]);
    await world.settled();
    const { seq, run_seq: runSeq, org_id: orgId } = await world.head(id);
    await query(`INSERT INTO annotations (org_id, rollout_seq, run_seq, note, author) VALUES ($1, $2, $3, 'n', 'a')`, [orgId, seq, runSeq]);
    // Compared with a ledger that knows nothing of it, its calls would go again; a comparison that is under way is void at another revision.
    await query('UPDATE rollout_heads SET unverified = false, revision = revision + 1 WHERE seq = $1', [seq]);
    await query(`INSERT INTO rollout_calls (rollout_seq, index, ledger_seq, sid, tool) VALUES ($1, 0, 1, 's', 't')`, [seq]);
    await query(`INSERT INTO saved_views (org_id, run_seq, name, query, author) VALUES ($1, $2, 'v', 'q', 'a')`, [orgId, runSeq]);
    const [run] = await query('SELECT id FROM runs WHERE seq = $1', [runSeq]);
    return { id, seq, runSeq, runId: run.id, orgId };
  }

  it('a rollout leaves no row, no object and no figure', async () => {
    const [stays, gone] = [await full('one', { large: false }), await full('one')];
    const before = await rowsBy('rollout_seq', gone.seq);
    expect(before).toMatchObject({
      rollout_meta: 1,
      rollout_starts: 1,
      rollout_transcripts: 1,
      rollout_messages: 1,
      annotations: 1,
      rollout_calls: 1,
    });
    expect((await objects()).filter((key) => key.includes(gone.id))).toHaveLength(2);
    const pack = await world.packOf(gone.id);
    expect(await objects()).toContain(pack);
    expect(await world.server.request('DELETE', `/v1/rollouts/${gone.id}`)).toMatchObject({ status: 200 });
    expect(total(await rowsBy('rollout_seq', gone.seq))).toBe(0);
    expect(await query('SELECT FROM rollout_heads WHERE seq = $1', [gone.seq])).toEqual([]);
    expect(await query('SELECT FROM rollouts WHERE seq = $1', [gone.seq])).toEqual([]);
    expect((await objects()).filter((key) => key.includes(gone.id) || key === pack)).toEqual([]);
    expect(await query('SELECT FROM rollout_garbage')).toEqual([]);
    expect(await world.server.request('DELETE', `/v1/rollouts/${gone.id}`)).toMatchObject({ status: 404 });
    expect((await world.get(stays.id)).messages).toHaveLength(4);
    await expect.poll(async () => (await world.server.request('GET', `/v1/runs/${stays.runId}`)).body.num_rollouts).toBe(1);
  });

  it('a rollout that is being derived returns to no table and no figure', async () => {
    const runName = 'derived meanwhile';
    const stays = await world.upload(1, { runName });
    await world.settled();
    const client = await world.server.database.pool.connect();
    try {
      // Deriving stops between what it read and what it writes: a new task has no id yet.
      await client.query('BEGIN');
      await client.query('LOCK TABLE rollout_tasks IN ACCESS EXCLUSIVE MODE');
      const gone = await world.upload(2, { runName, step: 1, rollout_info: { task_index: 77 } });
      // Databases of other tests are copies of the same template, in which the table has the same number.
      const waits = `SELECT count(*)::int AS n FROM pg_locks WHERE NOT granted AND relation = 'rollout_tasks'::regclass
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
      await expect.poll(async () => (await client.query(waits)).rows[0].n, { timeout: 20_000 }).toBeGreaterThan(0);
      const { seq } = await world.head(gone);
      expect(await world.server.request('DELETE', `/v1/rollouts/${gone}`)).toMatchObject({ status: 200 });
      await client.query('COMMIT');
      await expect.poll(async () => (await client.query(waits)).rows[0].n).toBe(0);
      const run = async () => (await world.server.request('GET', `/v1/runs/${encodeURIComponent(runName)}`)).body;
      for (let look = 0; look < 10; look += 1) {
        expect(await run()).toMatchObject({ num_rollouts: 1 });
        expect([await query('SELECT FROM rollouts WHERE seq = $1', [seq]), total(await rowsBy('rollout_seq', seq))]).toEqual([[], 0]);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      expect((await world.get(stays)).messages).toHaveLength(1);
    } finally {
      await client.query('ROLLBACK');
      client.release();
    }
  });

  it('a rollout that is being made searchable leaves no word', async () => {
    const client = await world.server.database.pool.connect();
    try {
      const [{ seq }] = await query(`SELECT (nextval(pg_get_serial_sequence('rollout_heads', 'seq')) + 1)::text AS seq`);
      // Whoever indexes the first message waits for this one, and writes its words when that is rolled back.
      await client.query('BEGIN');
      await client.query(`INSERT INTO rollout_search (rollout_seq, block, index, words) VALUES ($1, 0, 0, '')`, [seq]);
      const gone = await world.upload(2);
      expect((await world.head(gone)).seq).toBe(seq);
      const waits = `SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'transactionid'`;
      await expect.poll(async () => (await query(waits))[0].n, { timeout: 20_000 }).toBe(1);
      expect(await world.server.request('DELETE', `/v1/rollouts/${gone}`)).toMatchObject({ status: 200 });
      await client.query('ROLLBACK');
      // Words of a later one are there once the round of this one is over.
      await world.upload(1);
      await world.settled();
      expect(total(await rowsBy('rollout_seq', seq))).toBe(0);
    } finally {
      await client.query('ROLLBACK');
      client.release();
    }
  });

  it('an annotation of a rollout that is being erased is refused and not stored', async () => {
    const gone = await world.upload(1);
    await world.settled();
    const { seq } = await world.head(gone);
    const client = await world.server.database.pool.connect();
    try {
      await client.query('BEGIN');
      await eraseRollouts(client, [seq], true);
      const said = world.server.request('POST', '/v1/annotations', { body: { rollout: gone, tag: 'too late' } });
      // It waits for the transaction that erases, or is refused before.
      let answered = false;
      void said.finally(() => (answered = true));
      const waiting = `SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      await expect.poll(async () => answered || (await query(waiting))[0].n > 0).toBe(true);
      await client.query('COMMIT');
      expect(await said).toMatchObject({ status: 404, body: { code: 'rollout_not_found' } });
      expect(total(await rowsBy('rollout_seq', seq))).toBe(0);
    } finally {
      await client.query('ROLLBACK');
      client.release();
    }
  });

  it('an upgrade removes rows without a head that an earlier version left, also from figures', async () => {
    const runName = 'of an earlier version';
    const stays = await full(runName, { large: false });
    const left = [await world.upload(2, { runName }), await world.upload(2, { runName, metadata: { task_index: 4 } })];
    await world.settled();
    const run = async () => (await world.server.request('GET', `/v1/runs/${stays.runId}`)).body;
    await expect.poll(async () => (await run()).num_rollouts).toBe(3);
    const seqs: string[] = [];
    for (const id of left) {
      const { seq } = await world.head(id);
      seqs.push(seq);
      await query(`INSERT INTO annotations (org_id, rollout_seq, run_seq, note, author) VALUES ($1, $2, $3, 'n', 'a')`, [
        stays.orgId,
        seq,
        stays.runSeq,
      ]);
      await query('DELETE FROM rollout_messages WHERE rollout_seq = $1', [seq]);
      // A table of a later version.
      await query('DELETE FROM rollout_starts WHERE rollout_seq = $1', [seq]);
      await query('DELETE FROM rollout_heads WHERE seq = $1', [seq]);
    }
    const kept = await rowsBy('rollout_seq', stays.seq);
    // Since 0043 a step may have several marks.
    const migration = await readFile('apps/api/prisma/migrations/0020_headless_rows/migration.sql', 'utf8');
    await query(migration.replace(/ON CONFLICT \("run_seq", "phase", "step"\) DO [^;]*/, ''));
    await expect.poll(async () => (await run()).num_rollouts).toBe(1);
    for (const seq of seqs) {
      expect([await query('SELECT FROM rollouts WHERE seq = $1', [seq]), total(await rowsBy('rollout_seq', seq))]).toEqual([[], 0]);
    }
    expect(await rowsBy('rollout_seq', stays.seq)).toEqual(kept);
    expect((await query('SELECT sum(rollouts)::int AS n FROM step_rollups WHERE run_seq = $1 AND env_id = 0', [stays.runSeq]))[0].n).toBe(
      1,
    );
  });

  it('an environment leaves the run with its last rollout', async () => {
    const runName = 'of two environments';
    const [one, other] = await Promise.all(['acme/kept', 'acme/gone'].map((environment) => world.upload(1, { runName, environment })));
    const run = `/v1/runs/${encodeURIComponent(runName)}`;
    const named = async () => {
      const read = async (url: string) => (await world.server.request('GET', url)).body;
      // A read of the run settles it.
      const [view, config] = [await read(run), await read(`${run}/config`)];
      const usage = await read('/v1/environment-usage');
      const used = usage.environments.map(({ environment }: any) => environment);
      const ofRun = ['acme/gone', 'acme/kept'].filter((name) => used.includes(name));
      return [view.environments, config.success.map(({ environment }: any) => environment).toSorted(), ofRun];
    };
    expect(await named()).toEqual(Array(3).fill(['acme/gone', 'acme/kept']));
    expect(await world.server.request('DELETE', `/v1/rollouts/${other}`)).toMatchObject({ status: 200 });
    expect(await named()).toEqual(Array(3).fill(['acme/kept']));
    expect((await world.get(one!)).messages).toHaveLength(1);
    // What comes there again is counted again.
    await world.post([world.start(other!, { runName, environment: 'acme/gone' })]);
    expect(await named()).toEqual(Array(3).fill(['acme/gone', 'acme/kept']));
  });

  it('a run disappears at once, its name is free, and nothing of it remains', { timeout: 120_000 }, async () => {
    const rollouts = [await full('two'), await full('two', { large: false })];
    const { runId, runSeq, orgId } = rollouts[0]!;
    const [{ id: exportId }] = await query(
      `INSERT INTO rollout_exports (org_id, run_seq, state, request, author) VALUES ($1, $2, 'done', '{}', 'a') RETURNING id`,
      [orgId, runSeq],
    );
    await world.blobs.put(`exports/${orgId}/rollouts/${exportId}/part-00000.parquet`, Buffer.from('x'), { contentType: 'text/plain' });
    expect(total(await rowsBy('run_seq', runSeq))).toBeGreaterThan(5);
    expect(await world.server.request('DELETE', `/v1/runs/${runId}`)).toMatchObject({ status: 200 });
    expect(await world.server.request('GET', `/v1/runs/${runId}`)).toMatchObject({ status: 404 });
    for (const { seq, id } of rollouts) {
      expect(total(await rowsBy('rollout_seq', seq))).toBe(0);
      expect((await objects()).filter((key) => key.includes(id))).toEqual([]);
    }
    const again = await full('two', { large: false });
    expect(again.runSeq).not.toBe(runSeq);
    expect((await world.server.request('GET', '/v1/runs')).body.runs.filter(({ name }: any) => name === 'two')).toHaveLength(1);
    // Replicas may write to the old number for some seconds: the row of the run goes after that.
    await query(`UPDATE runs SET deleted_at = deleted_at - interval '2 minutes' WHERE seq = $1`, [runSeq]);
    expect(await world.services().eraser.eraseHidden()).toBe(1);
    expect(total(await rowsBy('run_seq', runSeq))).toBe(0);
    expect(await query('SELECT FROM runs WHERE seq = $1', [runSeq])).toEqual([]);
    expect((await world.blobs.list({ prefix: `exports/${orgId}/rollouts/${exportId}/` })).blobs).toEqual([]);
    expect((await world.get(again.id)).messages).toHaveLength(4);
  });

  it('a large run disappears from every read at once, and the rest is erased in the background', { timeout: 120_000 }, async () => {
    const ids = Array.from({ length: 1_200 }, () => randomUUID());
    for (let at = 0; at < ids.length; at += 300) {
      await world.post(ids.slice(at, at + 300).flatMap((id) => [world.start(id, { runName: 'large' }), world.message(id, 0)]));
    }
    await world.settled();
    const [{ id: runId, seq: runSeq }] = await query(`SELECT id, seq FROM runs WHERE name = 'large'`);
    const started = performance.now();
    expect(await world.server.request('DELETE', `/v1/runs/${runId}`)).toMatchObject({ status: 200 });
    const seconds = (performance.now() - started) / 1000;
    const left = async () => (await query('SELECT count(*)::int AS n FROM rollout_heads WHERE run_seq = $1', [runSeq]))[0].n;
    expect(await left()).toBe(200);
    expect(await world.server.request('GET', `/v1/runs/${runId}`)).toMatchObject({ status: 404 });
    expect(await world.server.request('GET', `/v1/runs/${runId}/rollouts`)).toMatchObject({ status: 404 });
    await world.services().eraser.eraseHidden(AbortSignal.abort());
    expect(await left()).toBe(200);
    await world.services().eraser.eraseHidden();
    expect(await left()).toBe(0);
    expect(await query('SELECT FROM rollout_garbage')).toEqual([]);
    console.log(`${kind}: ${Math.round(1_000 / seconds)} rollouts/s erased`);
  });

  it('continues after a crash at any point', async () => {
    const rollout = await full('three');
    let crashes = 0;
    const crashing = new Proxy(world.blobs, {
      get(target, name: keyof BlobStore) {
        if (name !== 'deletePrefix') return (target[name] as any).bind(target);
        return () => {
          crashes += 1;
          return Promise.reject(new Error('killed'));
        };
      },
    });
    await world.services(crashing).eraser.eraseRollout(rollout.orgId, rollout.id);
    expect(crashes).toBe(1);
    expect(total(await rowsBy('rollout_seq', rollout.seq))).toBe(0);
    expect((await objects()).filter((key) => key.includes(rollout.id))).not.toEqual([]);
    expect(await world.services().garbage.sweep()).toBe(1);
    expect((await objects()).filter((key) => key.includes(rollout.id))).toEqual([]);
  });

  it('a late seal restores nothing', async () => {
    const id = await world.upload(3, { runName: 'four' });
    await world.settled();
    const { seq, org_id: orgId } = await world.head(id);
    const erasing = new Proxy(world.blobs, {
      get(target, name: keyof BlobStore) {
        if (name !== 'put') return (target[name] as any).bind(target);
        return async (...args: Parameters<BlobStore['put']>) => {
          await world.services().eraser.eraseRollout(orgId, id);
          return target.put(...args);
        };
      },
    });
    expect(await world.seal(erasing)).toMatchObject({ sealed: 0, skipped: 1 });
    expect(total(await rowsBy('rollout_seq', seq))).toBe(0);
    expect((await objects()).filter((key) => key.includes(id))).toEqual([]);
  });

  it('retention erases rollouts that are older than the setting of their run or organisation, and nothing else', async () => {
    const [old, young, kept] = [await full('five'), await full('five', { large: false }), await full('six', { large: false })];
    const { retention } = world.services();
    expect(await retention.setOfRun(old.orgId, randomUUID(), 3)).toBe(false);
    expect(await retention.sweep()).toBe(0);
    await query(`UPDATE rollout_heads SET last_at = now() - interval '4 days' WHERE seq = ANY($1::bigint[])`, [[old.seq, kept.seq]]);
    await query(`UPDATE rollout_heads SET last_at = now() - interval '2 days' WHERE seq = $1`, [young.seq]);
    expect(await retention.setOfRun(old.orgId, old.runId, 3)).toBe(true);
    expect(await retention.sweep()).toBe(1);
    expect(total(await rowsBy('rollout_seq', old.seq))).toBe(0);
    expect((await objects()).filter((key) => key.includes(old.id))).toEqual([]);
    expect((await world.get(young.id)).messages).toHaveLength(4);
    const stray = randomUUID();
    await world.post([world.message(stray, 0)]);
    await query(`UPDATE rollout_heads SET last_at = now() - interval '4 days' WHERE id = $1`, [stray]);
    await retention.setOfOrganisation(old.orgId, 3);
    // The run's own setting is above the organisation's.
    await retention.setOfRun(kept.orgId, kept.runId, 30);
    expect(await retention.sweep()).toBe(1);
    expect(await world.head(stray)).toBeUndefined();
    await retention.setOfRun(kept.orgId, kept.runId, null);
    expect(await retention.sweep()).toBe(1);
    expect(total(await rowsBy('rollout_seq', kept.seq))).toBe(0);
    await retention.setOfOrganisation(old.orgId, null);
  });

  it('a rollout that cannot be erased stops neither the erasure of others nor retention', async () => {
    const { retention, eraser } = world.services();
    const upload = async (runName?: string) => {
      const id = randomUUID();
      await world.post([...(runName === undefined ? [] : [world.start(id, { runName })]), world.message(id, 0)]);
      return id;
    };
    const ids = [
      await upload('stuck'),
      await upload('hidden'),
      await upload('kept'),
      await upload('expired'),
      await upload(),
      await upload(),
    ];
    await world.settled();
    const [stuck, hidden, kept, expired, strayStuck, stray] = await Promise.all(ids.map((id) => world.head(id)));
    await query('UPDATE runs SET deleted_at = now(), name_hash = sha256(name_hash) WHERE seq = ANY($1)', [[stuck.run_seq, hidden.run_seq]]);
    await query('UPDATE runs SET retention_days = 3 WHERE seq = ANY($1)', [[kept.run_seq, expired.run_seq]]);
    await query(`UPDATE rollout_heads SET last_at = now() - interval '4 days' WHERE seq = ANY($1)`, [
      [kept.seq, expired.seq, strayStuck.seq, stray.seq],
    ]);
    await retention.setOfOrganisation(stray.org_id, 3);
    // As something does that only PostgreSQL knows of.
    await query(`CREATE FUNCTION fail_here() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = '22P02'; END $$`);
    const seqs = [stuck.seq, kept.seq, strayStuck.seq].join(', ');
    await query(`CREATE TRIGGER fail BEFORE DELETE ON rollout_heads FOR EACH ROW WHEN (OLD.seq IN (${seqs})) EXECUTE FUNCTION fail_here()`);
    const left = async () => (await Promise.all(ids.map((id) => world.head(id)))).map((head) => head !== undefined);
    try {
      await expect(eraser.eraseHidden()).rejects.toMatchObject({ code: '22P02' });
      await expect(retention.sweep()).rejects.toMatchObject({ code: '22P02' });
    } finally {
      await query('DROP FUNCTION fail_here CASCADE');
    }
    expect(await left()).toEqual([true, false, true, false, true, false]);
    await eraser.eraseHidden();
    await retention.sweep();
    await retention.setOfOrganisation(stray.org_id, null);
    expect(await left()).toEqual(ids.map(() => false));
  });

  it('retention finds what is in no run behind that of an organisation which keeps its own for long', async () => {
    const { pool } = world.server.database;
    const upload = async () => {
      const id = randomUUID();
      await world.post([world.message(id, 0)]);
      await query(`UPDATE rollout_heads SET last_at = now() - interval '4 days' WHERE id = $1`, [id]);
      return world.head(id);
    };
    const [first, second] = [await upload(), await upload()];
    const [{ id: other }] = await query(`INSERT INTO organisations (name, retention_days) VALUES ('keeps its own', 1000) RETURNING id`);
    await query('UPDATE rollout_heads SET org_id = $2 WHERE seq = $1', [first.seq, other]);
    const { retention } = world.services();
    await retention.setOfOrganisation(second.org_id, 3);
    const page = await selectStrays(pool, String(Number(first.seq) - 1), 1);
    expect(page).toEqual({ expired: [], last: first.seq });
    expect(await selectStrays(pool, page.last!, 1)).toMatchObject({ expired: [{ seq: second.seq }], last: second.seq });
    expect(await selectStrays(pool, second.seq, 1)).toEqual({ expired: [], last: null });
    await retention.setOfOrganisation(second.org_id, null);
    await query('DELETE FROM rollout_messages WHERE rollout_seq = ANY($1)', [[first.seq, second.seq]]);
    await query('DELETE FROM rollout_heads WHERE seq = ANY($1)', [[first.seq, second.seq]]);
    await query('DELETE FROM organisations WHERE id = $1', [other]);
  });

  it('partitions for the next days are created, and old empty ones are dropped', async () => {
    const { partitions } = world.services();
    await expect.poll(() => partitions.maintain()).toEqual({ created: [], dropped: [] });
    const names = async () =>
      (await query(`SELECT relname AS name FROM pg_class WHERE relname ~ '^rollout_messages_2' AND relkind = 'r' ORDER BY 1`)).map(
        ({ name }) => name,
      );
    const day = async (offset: number) =>
      (await query(`SELECT to_char((now() AT TIME ZONE 'UTC')::date + $1::int, 'YYYYMMDD') AS day`, [offset]))[0].day;
    expect(await names()).toEqual(await Promise.all([0, 1, 2].map(async (offset) => `rollout_messages_${await day(offset)}`)));
    const id = await world.upload(2, { runName: 'seven' });
    expect(
      (
        await query(
          'SELECT m.tableoid::regclass::text AS part FROM rollout_messages m JOIN rollout_heads h ON h.seq = m.rollout_seq WHERE h.id = $1 LIMIT 1',
          [id],
        )
      )[0].part,
    ).toBe(`rollout_messages_${await day(0)}`);
    // Two old days, one of which has a row that nobody sealed.
    for (const offset of [-5, -4]) {
      const [{ from, to }] = await query(
        `SELECT ((now() AT TIME ZONE 'UTC')::date + $1::int)::text AS from, ((now() AT TIME ZONE 'UTC')::date + $1::int + 1)::text AS to`,
        [offset],
      );
      await query(
        `CREATE TABLE rollout_messages_${await day(offset)} PARTITION OF rollout_messages FOR VALUES FROM ('${from}') TO ('${to}')`,
      );
    }
    await query(
      `WITH moved AS (UPDATE rollout_heads SET day = (now() AT TIME ZONE 'UTC')::date - 4 WHERE id = $1 RETURNING seq, day)
      UPDATE rollout_messages m SET day = moved.day FROM moved WHERE m.rollout_seq = moved.seq`,
      [id],
    );
    // It leaves a partition that something else reads to the next run.
    let count = 0;
    const dropped = async () => (count += (await partitions.maintain()).dropped.length);
    await expect.poll(dropped).toBe(1);
    expect(await names()).toContain(`rollout_messages_${await day(-4)}`);
    await world.seal();
    await expect.poll(dropped).toBe(2);
    // A late event of a day without a partition is in the default one, and in every read.
    await world.post([world.message(id, 2)]);
    expect((await world.get(id)).messages.map(({ index }: any) => index)).toEqual([0, 1, 2]);
  });
});
