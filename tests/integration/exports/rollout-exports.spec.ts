import { randomUUID } from 'node:crypto';
import { loadZstd } from '@palestra/kit/zstd';
import { parquetReadObjects } from 'hyparquet';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Sample, upload, uploadOf } from '../../support/exported-rollouts.ts';
import { sharedServer, startServer, type TestServer } from '../../support/server.ts';

const byText = (a: string, b: string) => (a < b ? -1 : 1);

/** Exports of rollouts over the whole service: what is in them, where it comes from, and what a crash in the middle leaves. */
let server: TestServer;
let samples: Sample[];
const RUN = 'export me/ünd "quotes"';

beforeAll(async () => {
  server = await sharedServer();
  const made = uploadOf(RUN);
  samples = made.samples;
  await upload((events) => server.request('POST', '/v1/rollouts', { body: { events } }), made.events);
});
afterAll(() => server?.close());

const create = (body: object, headers = {}) => server.request('POST', '/v1/exports', { body: { run: RUN, ...body }, headers });

async function finished(id: string, on: TestServer = server): Promise<any> {
  for (const deadline = Date.now() + 120_000; Date.now() < deadline;) {
    const { body } = await on.request('GET', `/v1/exports/${id}`);
    if (!['pending', 'running'].includes(body.state)) return body;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`export ${id} does not finish`);
}

async function exported(body: object): Promise<any> {
  const answer = await create(body);
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  const view = await finished(answer.body.id);
  expect(view, view.error).toMatchObject({ state: 'complete', error: null });
  return view;
}

const fetchFile = async (file: { url: string }) => Buffer.from(await (await fetch(file.url)).arrayBuffer());
/** The bytes from `start` on. */
async function rest(view: any, name: string, start: number) {
  const headers = { 'x-api-key': server.apiKey, range: `bytes=${start}-` };
  const answer = await fetch(`${server.url}/v1/exports/${view.id}/files/${encodeURIComponent(name)}`, { headers });
  return { status: answer.status, range: answer.headers.get('content-range'), bytes: Buffer.from(await answer.arrayBuffer()) };
}
const dataOf = (view: any) => view.files.filter(({ name }: any) => name.startsWith('data/'));

async function lines(view: any): Promise<any[]> {
  const texts = await Promise.all(dataOf(view).map(async (file: any) => (await fetchFile(file)).toString()));
  return texts.flatMap((text) => text.split('\n').filter(Boolean)).map((line) => JSON.parse(line));
}

async function parquet(view: any): Promise<Record<string, any>[]> {
  const rows: Record<string, any>[] = [];
  for (const file of dataOf(view)) {
    const bytes = await fetchFile(file);
    expect(bytes.length).toBe(file.size);
    rows.push(...(await parquetReadObjects({ file: new Uint8Array(bytes).buffer, compressors: { ZSTD: (await loadZstd()).decompress } })));
  }
  return rows;
}

async function otherTenant(): Promise<{ 'x-api-key': string }> {
  const { pool } = server.database;
  const { rows } = await pool.query(`INSERT INTO organisations (name) VALUES ('other-${randomUUID()}') RETURNING id`);
  const key = `or_${randomUUID()}`;
  await pool.query(
    `INSERT INTO api_keys (org_id, user_id, name, prefix, hash, scopes) SELECT $1, id, 'x', 'or_', sha256($2::bytea), '{rollouts}' FROM users LIMIT 1`,
    [rows[0].id, Buffer.from(key)],
  );
  return { 'x-api-key': key };
}

describe('POST /v1/exports refuses', () => {
  test('a missing key, another shape, an unknown run, and a key of the query that does not exist', async () => {
    expect((await create({}, { 'x-api-key': '' })).status).toBe(401);
    expect(await create({ format: 'csv' })).toMatchObject({ status: 422, body: { code: 'invalid_body' } });
    expect(await create({ run: 'no such run' })).toMatchObject({ status: 404, body: { code: 'run_not_found' } });
    const unknown = await create({ query: 'rewrd:>0' });
    expect(unknown).toMatchObject({ status: 422, body: { code: 'invalid_query' } });
    expect(JSON.stringify(unknown.body)).toContain('reward');
  });

  test('another tenant: run, export and files do not exist for it', async () => {
    const view = await exported({ format: 'rollouts-parquet' });
    const other = await otherTenant();
    expect(await create({}, other)).toMatchObject({ status: 404, body: { code: 'run_not_found' } });
    const name = encodeURIComponent(view.files[0].name);
    for (const [method, path] of [
      ['GET', `/v1/exports/${view.id}`],
      ['GET', `/v1/exports/${view.id}/files/${name}`],
      ['DELETE', `/v1/exports/${view.id}`],
    ] as const) {
      expect((await server.request(method, path, { headers: other })).body).toMatchObject({
        code: expect.stringMatching(/export_not_found|scope_missing/),
      });
    }
    expect((await server.request('GET', '/v1/exports', { headers: other })).body).toEqual({ exports: [] });
    expect((await server.request('GET', `/v1/exports/${view.id}/files/${name}`)).status).toBe(200);
  });
});

test('a rollout that does not fit into memory is left out and named, and the others are written', async () => {
  const all = await lines(await exported({ format: 'jsonl' }));
  const [{ rollout_id: large }] = all;
  const resize = (bytes: string) => server.database.pool.query(`UPDATE rollouts SET bytes = ${bytes} WHERE id = $1`, [large]);
  await resize('bytes + 134217728');
  try {
    const view = await exported({ format: 'jsonl' });
    expect(view).toMatchObject({ written: all.length - 1, too_large: [large] });
    expect((await lines(view)).map(({ rollout_id: id }) => id)).toEqual(all.slice(1).map(({ rollout_id: id }) => id));
    const manifest = await fetchFile(view.files.find(({ name }: any) => name === 'manifest.json'));
    expect(JSON.parse(String(manifest)).too_large).toEqual([large]);
    expect(await exported({ format: 'rollouts-parquet' })).toMatchObject({ written: all.length, too_large: [] });
  } finally {
    await resize('bytes - 134217728');
  }
});

test('a file continues at any byte, so that an interrupted download is complete', async () => {
  const view = await exported({ format: 'jsonl' });
  const [{ name, size }] = dataOf(view);
  const whole = await rest(view, name, 0);
  expect([whole.status, whole.range]).toEqual([206, `bytes 0-${size - 1}/${size}`]);
  const at = Math.floor(size / 2);
  const part = await rest(view, name, at);
  expect([part.status, part.range]).toEqual([206, `bytes ${at}-${size - 1}/${size}`]);
  expect(whole.bytes.subarray(at).equals(part.bytes)).toBe(true);
  const beyond = await rest(view, name, size);
  expect([beyond.status, JSON.parse(String(beyond.bytes)).code]).toEqual([416, 'range_not_satisfiable']);
});

describe('lineage', () => {
  test('every field has its provenance, advantages are over the whole group, and JSON is unchanged', async () => {
    const view = await exported({ format: 'parquet', query: 'reward:>0.5', lens: 'skyrl' });
    const rows = await parquet(view);
    const wanted = samples.filter(({ reward }) => reward !== null && reward > 0.5);
    expect(rows.map(({ rollout_id }) => String(rollout_id)).toSorted(byText)).toEqual(wanted.map(({ id }) => id).toSorted(byText));
    expect(view).toMatchObject({ run: RUN, query: 'reward:>0.5', lens: 'skyrl', total: wanted.length, written: wanted.length, skipped: 0 });
    const row = rows.find(({ rollout_id }) => rollout_id === samples[1]!.id)!;
    expect(row).toMatchObject({
      run: RUN,
      environment: 'acme/whodunit',
      environment_version: '7',
      split: 'train',
      task_index: 0n,
      model: 'tiny',
      step: 1,
      step_prov: 'reported',
      group_prov: 'reported',
      sample_idx: 1,
      sample_prov: 'reported',
      phase: 'train',
      reward: 1,
      reward_prov: 'parsed',
      group_scored: 4,
      group_mean: 0.5,
      finished: true,
      num_messages: 6,
      tool_calls: 1,
      turns: 1,
    });
    // [0, 1, 1, 0]: std (ddof 1) is 0.57735.
    expect(row['advantage']).toBeCloseTo(0.5 / (0.577350269 + 1e-6), 6);
    expect(JSON.parse(row['task_spec'])).toEqual({ seed: 0 });
    expect(JSON.parse(row['metadata'])).toMatchObject({ group_id: 'g0', note: 'é' });
    expect(row['started_at']).toEqual(new Date(1_700_000_000_000));
    expect(row['messages'].map(({ type }: any) => type)).toEqual([
      'system_message',
      'user_message',
      'reasoning',
      'assistant_message',
      'tool_call',
      'tool_result',
    ]);
    expect(row['messages'][5]).toMatchObject({ reward: 1, is_finished: true, call_id: 'c', metadata: null });
    expect(Object.keys(view.figures.environments)).toEqual(['acme/whodunit@7']);
    const manifest = JSON.parse((await fetchFile(view.files.find(({ name }: any) => name === 'manifest.json'))).toString());
    expect(manifest).toMatchObject({ run: RUN, canonical_query: 'reward:>0.5', lens: 'skyrl', figures: { rollouts: wanted.length } });
  });

  test('unscored rollouts have null, never 0, and are in no figure', async () => {
    const view = await exported({ format: 'rollouts-parquet' });
    const rows = await parquet(view);
    const rewards = samples.map(({ reward }) => reward).filter((reward) => reward !== null);
    expect(rows).toHaveLength(samples.length);
    expect(rows.filter(({ reward }) => reward === null)).toHaveLength(samples.length - rewards.length);
    expect(rows.every(({ reward, advantage }) => reward !== null || advantage === null)).toBe(true);
    expect(view.figures).toMatchObject({ rollouts: 20, scored: rewards.length, effective: rewards.length });
    expect(view.figures.reward_mean).toBeCloseTo(rewards.reduce((a, b) => a + b, 0) / rewards.length, 9);
    expect(rows[0]).not.toHaveProperty('messages');
  });

  test('credentials are replaced on request, also in metadata', async () => {
    const open = (await lines(await exported({ format: 'jsonl', query: 'reward:3' })))[0];
    expect(open.metadata.session_token).toMatch(/^sk-a+$/);
    const redacted = (await lines(await exported({ format: 'jsonl', query: 'reward:3', redact: true })))[0];
    expect(redacted.metadata.session_token).toBe('[redacted:api_key]');
  });

  test('a regex decides over messages too', async () => {
    const view = await exported({ format: 'jsonl', query: '/Suspect [13]\\./ reward:>=0' });
    const wanted = samples.filter(({ reward, sample }) => reward !== null && reward >= 0 && (sample === 1 || sample === 3));
    expect((await lines(view)).map(({ rollout_id }) => String(rollout_id)).toSorted(byText)).toEqual(
      wanted.map(({ id }) => id).toSorted(byText),
    );
  });

  test('a time that Python cannot represent is null', async () => {
    const run = 'odd clocks';
    const eventsAt = (timestamp: number) => {
      const id = randomUUID();
      const message = {
        eventType: 'message',
        eventId: randomUUID(),
        rolloutEventId: id,
        timestamp,
        index: 0,
        type: 'user_message',
        content: 'q',
      };
      return [{ eventType: 'rollout', eventId: id, timestamp, runName: run, rolloutName: String(timestamp) }, message];
    };
    const times = [1_700_000_000_000_000, 253_402_300_799_999, -62_135_596_800_001, 0];
    expect((await server.request('POST', '/v1/rollouts', { body: { events: times.flatMap(eventsAt) } })).status).toBe(200);
    for (const rows of [await lines(await exported({ run, format: 'jsonl' })), await parquet(await exported({ run, format: 'parquet' }))]) {
      const shown = (time: unknown) => (time === null ? null : new Date(time as string).getTime());
      expect(Object.fromEntries(rows.map((row) => [row.rollout_name, [shown(row.started_at), shown(row.messages[0].sent_at)]]))).toEqual({
        '1700000000000000': [null, null],
        '253402300799999': [253_402_300_799_999, 253_402_300_799_999],
        '-62135596800001': [null, null],
        '0': [0, 0],
      });
    }
  });

  test('all runs, and an empty export', async () => {
    const all = await server.request('POST', '/v1/exports', { body: { format: 'rollouts-parquet', query: 'reward:3' } });
    expect(await finished(all.body.id)).toMatchObject({ run: null, written: 1 });
    const none = await exported({ format: 'parquet', query: 'reward:>100' });
    expect(none).toMatchObject({ written: 0, total: 0, shards: 1 });
    expect(await parquet(none)).toEqual([]);
  });
});

describe('training data', () => {
  test('pairs have the best and the worst of a group, only with variance, only scored', async () => {
    const pairs = await lines(await exported({ format: 'preference' }));
    const found = pairs.map(({ chosen_rollout_id, rejected_rollout_id, chosen_reward, rejected_reward, margin, group_n }: any) => [
      samples.find(({ id }) => id === chosen_rollout_id)!.group,
      samples.find(({ id }) => id === rejected_rollout_id)!.group,
      chosen_reward,
      rejected_reward,
      margin,
      group_n,
    ]);
    expect(found.toSorted((a, b) => byText(String(a), String(b)))).toEqual([
      [0, 0, 1, 0, 1, 4],
      [4, 4, 3, -1, 4, 3],
    ]);
    expect(pairs[0].prompt.map(({ role }: any) => role)).toEqual(['system', 'user']);
    expect(pairs[0].chosen[0].tool_calls[0].function.name).toBe('accuse');
  });

  test('pairs come only from rollouts of the query', async () => {
    expect(await lines(await exported({ format: 'preference', query: 'reward:>0' }))).toMatchObject([
      { chosen_reward: 3, rejected_reward: 0.25, group_n: 2 },
    ]);
  });

  test('a curriculum has tasks that are solved sometimes', async () => {
    const tasks = await parquet(await exported({ format: 'curriculum' }));
    // Rewards leave [0, 1], so that solved means above 0: 2 of 4; all; none scored; 1 of 1; 2 of 3.
    tasks.sort((a, b) => Number(a['task_index'] - b['task_index']));
    expect(tasks.map(({ task_index, solve_rate, n }) => [Number(task_index), solve_rate, Number(n)])).toEqual([
      [0, 0.5, 4],
      [4, 2 / 3, 3],
    ]);
    expect(Object.keys(tasks[0]!)).toEqual(['prompt', 'env_class', 'env_name', 'split', 'task_index', 'solve_rate', 'n']);
    expect(tasks[0]!['prompt']).toBe(
      '[{"role": "system", "content": "You are a detective."}, {"role": "user", "content": "Case 0: who was it?"}]',
    );
    expect(tasks[0]).toMatchObject({ env_class: 'openreward', env_name: 'acme/whodunit', split: 'train' });
  });

  test('a Hugging Face folder with its card', async () => {
    const view = await exported({ format: 'hf', shard_rows: 9 });
    expect(view.files.map(({ name, rows }: any) => [name, rows])).toEqual([
      ['data/train-00000-of-00003.parquet', 9],
      ['data/train-00001-of-00003.parquet', 9],
      ['data/train-00002-of-00003.parquet', 2],
      ['manifest.json', 0],
      ['README.md', 0],
    ]);
    const card = (await fetchFile(view.files.at(-1))).toString();
    for (const word of ['"rollouts":20', 'acme/whodunit@7', 'license: other', '| lens | canonical |']) expect(card).toContain(word);
  });
});

describe('a stopped export', () => {
  const run = `resumed-${randomUUID()}`;
  const made = uploadOf(
    run,
    Array.from({ length: 60 }, () => ({ rewards: [0, 1, null, 0.5] })),
  );
  beforeAll(() => upload((events) => server.request('POST', '/v1/rollouts', { body: { events } }), made.events));

  const stored = async (id: string) => {
    const { rows } = await server.database.pool.query('SELECT state, files FROM rollout_exports WHERE id = $1', [id]);
    return rows[0] as { state: string; files: { key: string }[] };
  };

  /** Stops the next export at its fifth file and leaves it, after `meanwhile`, as a crash does: running, with an expired lease. */
  async function createAndStop(body: object, meanwhile = async () => {}): Promise<{ id: string; before: string[] }> {
    const { pool } = server.database;
    await pool.query(`
      CREATE FUNCTION lose_lease() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        NEW.cursor = NEW.cursor || '{"lease": "nobody"}';
        RETURN NEW;
      END $$;
      CREATE TRIGGER lose_lease BEFORE UPDATE ON rollout_exports FOR EACH ROW
        WHEN (NEW.state = 'running' AND jsonb_array_length(NEW.files) >= 5) EXECUTE FUNCTION lose_lease()`);
    try {
      const { id } = (await create(body)).body as { id: string };
      await expect.poll(async () => (await stored(id)).files.length, { interval: 20 }).toBe(5);
      const { state, files } = await stored(id);
      expect(state).toBe('running');
      await meanwhile();
      await pool.query(`UPDATE rollout_exports SET updated_at = now() - interval '2 minutes' WHERE id = $1`, [id]);
      return { id, before: files.map(({ key }) => key) };
    } finally {
      await pool.query('DROP FUNCTION lose_lease CASCADE');
    }
  }

  test.each([
    ['jsonl', 3, 80],
    ['rollouts-parquet', 3, 80],
    ['preference', 1, 60],
    ['curriculum', 1, 60],
  ])('goes on after the last finished file: %s', { timeout: 150_000 }, async (format, shard_rows, shards) => {
    const { id, before } = await createAndStop({ run, format, shard_rows });
    const view = await finished(id);
    expect(view).toMatchObject({ state: 'complete', written: shards * shard_rows, shards });
    const after = (await stored(id)).files.map(({ key }) => key);
    expect(after.slice(0, before.length)).toEqual(before);
    const rows: any[] = format === 'jsonl' || format === 'preference' ? await lines(view) : await parquet(view);
    const keys = rows.map((row) => row.rollout_id ?? row.chosen_rollout_id ?? Number(row.task_index));
    // Every one, and every one once.
    const wanted = { jsonl: made.samples, 'rollouts-parquet': made.samples, preference: made.samples.filter(({ reward }) => reward === 1) }[
      format
    ];
    const asked: unknown[] = wanted?.map(({ id }) => id) ?? [...Array(60).keys()];
    expect(keys).toHaveLength(asked.length);
    expect(new Set<unknown>(keys)).toEqual(new Set(asked));
    if (wanted === made.samples) expect(view.figures).toMatchObject({ rollouts: 240, scored: 180 });
  });

  test('leaves out rollouts that are erased before it reads them', { timeout: 150_000 }, async () => {
    const name = `erased-${randomUUID()}`;
    const some = uploadOf(
      name,
      Array.from({ length: 10 }, () => ({ rewards: [0, 1, null, 0.5] })),
    );
    await upload((events) => server.request('POST', '/v1/rollouts', { body: { events } }), some.events);
    const { rows: arrived } = await server.database.pool.query<{ id: string }>(
      `SELECT h.id FROM rollout_heads h JOIN runs r ON r.seq = h.run_seq WHERE r.name = $1 ORDER BY h.seq`,
      [name],
    );
    const gone = arrived.slice(20, 27).map((row) => row.id);
    const { id } = await createAndStop({ run: name, format: 'jsonl', shard_rows: 3 }, async () => {
      for (const rollout of gone) expect((await server.request('DELETE', `/v1/rollouts/${rollout}`)).status).toBe(200);
    });
    const view = await finished(id);
    expect(view).toMatchObject({ state: 'complete', written: some.samples.length - gone.length });
    const rows = await lines(view);
    const left = some.samples.map((sample) => sample.id).filter((sample) => !gone.includes(sample));
    expect(rows.map(({ rollout_id }) => rollout_id as string).toSorted(byText)).toEqual(left.toSorted(byText));
    expect(rows.every(({ messages }) => messages.length === 6)).toBe(true);
  });

  test('is erased with its files when it is deleted', async () => {
    const view = await exported({ format: 'jsonl' });
    expect((await server.request('DELETE', `/v1/exports/${view.id}`)).body).toEqual({ deleted: true });
    expect((await fetch(view.files[0].url)).status).toBe(404);
    expect((await server.request('GET', `/v1/exports/${view.id}`)).body).toMatchObject({ code: 'export_not_found' });
    expect((await server.request('DELETE', `/v1/exports/${view.id}`)).body).toMatchObject({ code: 'export_not_found' });
  });
});

describe('sealed rollouts and objects', () => {
  let sealing: TestServer;
  const run = 'sealed';
  const image = `data:image/png;base64,${Buffer.alloc(6_000, 'picture').toString('base64')}`;
  const looked = `look: ${image} and palestra-object:${'0'.repeat(64)}.png`;
  const large = 'é'.repeat(5 * 1024 * 1024);

  beforeAll(async () => {
    sealing = await startServer({ sealing: { finishedMs: 0, silentMs: 0 } });
    const made = uploadOf(run);
    const [first] = made.events as { eventId: string }[];
    const message = (index: number, content: string) => ({
      eventType: 'message',
      eventId: randomUUID(),
      rolloutEventId: first!.eventId,
      timestamp: 1_700_000_000_100,
      index,
      type: 'user_message',
      content,
      isFinished: false,
      metadata: { exact: 0.1 },
    });
    await upload(
      (events) => sealing.request('POST', '/v1/rollouts', { body: { events } }),
      [...made.events, message(6, `look: ${image} and palestra-object:${'0'.repeat(64)}.png`)],
    );
    await upload((events) => sealing.request('POST', '/v1/rollouts', { body: { events } }), [message(7, large)]);
  });
  afterAll(() => sealing?.close());

  const everything = async () => {
    const { body } = await sealing.request('POST', '/v1/exports', { body: { run, format: 'jsonl' } });
    const view = await finished(body.id, sealing);
    expect(view).toMatchObject({ state: 'complete', written: 20 });
    // Verdicts come when they come; transcripts are what is compared.
    return (await lines(view)).map(({ rollout_id, messages }) => ({ rollout_id, messages }));
  };

  test('images and large bodies are restored, and sealed transcripts equal the rows', { timeout: 150_000 }, async () => {
    const before = await everything();
    const restored = before.flatMap(({ messages }) => messages).filter(({ index }: any) => index > 5);
    // A text that only looks like a reference stays. Compared without printing ten megabytes.
    expect(restored.map(({ content }: any) => content.length)).toEqual([looked.length, large.length]);
    expect(restored.map(({ content }: any) => [looked, large].indexOf(content))).toEqual([0, 1]);
    const unsealed = async () =>
      (await sealing.database.pool.query('SELECT count(*)::int AS n FROM rollout_heads WHERE unsealed')).rows[0].n as number;
    while ((await unsealed()) > 0) await new Promise((resolve) => setTimeout(resolve, 200));
    expect((await sealing.database.pool.query('SELECT count(*)::int AS n FROM rollout_messages')).rows[0].n).toBe(0);
    expect(await everything()).toEqual(before);
  });
});
