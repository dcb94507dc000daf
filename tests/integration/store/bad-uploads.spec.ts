import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { FileBlobStore, UrlSigner } from '@palestra/blobs';
import { sharedServer, type TestServer } from '../../support/server.ts';

/** What no client should send, and some do. Whatever it is, the next upload is stored. */
let server: TestServer;
beforeAll(async () => {
  server = await sharedServer();
});
afterAll(() => server?.close());

const start = (id: string, more: object = {}) => ({ eventType: 'rollout', eventId: id, timestamp: Date.now(), runName: 'bad', ...more });
const message = (rollout: string, index: number, more: object = {}) => ({
  eventType: 'message',
  eventId: randomUUID(),
  rolloutEventId: rollout,
  timestamp: Date.now(),
  index,
  type: 'assistant_message',
  content: 'x',
  isFinished: false,
  metadata: {},
  ...more,
});
const post = (events: unknown[], headers: Record<string, string> = {}) =>
  server.request('POST', '/v1/rollouts', { body: { events }, headers });
const send = async (body: Uint8Array | string, route = '/v1/rollouts', headers: Record<string, string> = {}) => {
  const answer = await fetch(server.url + route, {
    method: 'POST',
    body: typeof body === 'string' ? body : Buffer.from(body),
    headers: { 'x-api-key': server.apiKey, 'content-type': 'application/json', ...headers },
  });
  return { status: answer.status, body: (await answer.json()) as any };
};
const rows = async (id: string) => {
  const { rows: found } = await server.database.pool.query(
    `SELECT h.org_id, x.index, x.content, x.metadata, x.reward, x.blob_key, x.bytes FROM rollout_heads h JOIN rollout_messages x ON x.day = h.day AND x.rollout_seq = h.seq
     WHERE h.id = $1 ORDER BY h.seq, x.index`,
    [id],
  );
  return found as {
    org_id: string;
    index: number;
    content: string;
    metadata: any;
    reward: number | null;
    blob_key: string | null;
    bytes: number;
  }[];
};

afterEach(async () => {
  const id = randomUUID();
  const { status, body } = await post([start(id), message(id, 0)]);
  if (status !== 200 || body.accepted !== 2) throw new Error(`the next upload was not stored: ${status}`);
});

describe('a body that is not a batch', () => {
  it.each(['{"events":[', '{"events":{}}', '[]', 'null', '"events"', '', '\u0000', '{"events":[1,null,"x",[]]}'])(
    '%j is refused by name',
    async (body) => {
      const answer = await send(body);
      expect(answer.status).toBe(422);
      expect(['invalid_json', 'invalid_body']).toContain(answer.body.code);
    },
  );

  it.each(['/v1/rollouts', '/v1/traces'])('a decompression bomb at %s is 413, damaged compression 400', async (route) => {
    const bomb = gzipSync(Buffer.alloc(70 * 1024 * 1024, 32));
    expect(await send(bomb, route, { 'content-encoding': 'gzip' })).toMatchObject({ status: 413, body: { code: 'body_too_large' } });
    const cut = await send(Buffer.from('no gzip'), route, { 'content-encoding': 'gzip' });
    expect(cut.status).toBe(400);
  });

  it.each([10_000, 1_000_000])('JSON nested %d deep is answered without a crash', async (depth) => {
    const id = randomUUID();
    const deep = `${'['.repeat(depth)}${']'.repeat(depth)}`;
    const bare = await send(deep);
    expect(bare).toMatchObject({ status: 422 });
    const inside = await send(`{"events":[${JSON.stringify(message(id, 0)).replace('"metadata":{}', `"metadata":{"x":${deep}}`)}]}`);
    expect([200, 422]).toContain(inside.status);
    if (inside.status === 200) expect(await rows(id)).toHaveLength(1);
    const traces = await send(`{"resourceSpans":[{"scopeSpans":${deep}}]}`, '/v1/traces');
    expect([200, 400]).toContain(traces.status);
  });
});

describe('names and tenants', () => {
  it('a run name of 10 kB is stored, one of 20 kB is refused', async () => {
    const [kept, refused] = [randomUUID(), randomUUID()];
    expect(await post([start(kept, { runName: 'n'.repeat(10_240) })])).toMatchObject({ status: 200 });
    const answer = await post([start(refused, { runName: 'n'.repeat(20_480) })]);
    expect(answer).toMatchObject({ status: 422, body: { code: 'invalid_body', detail: [{ msg: expect.stringContaining('runName') }] } });
  });

  it('the same id in two organisations is two rollouts', async () => {
    const { rows: orgs } = await server.database.pool.query(
      `INSERT INTO organisations (name) VALUES ('other-${randomUUID()}') RETURNING id`,
    );
    const key = `or_${randomUUID()}`;
    await server.database.pool.query(
      `INSERT INTO api_keys (org_id, user_id, name, prefix, hash, scopes) SELECT $1, id, 'x', 'or_', sha256($2::bytea), '{rollouts}' FROM users LIMIT 1`,
      [orgs[0].id, Buffer.from(key)],
    );
    const id = randomUUID();
    const event = randomUUID();
    await post([start(id), message(id, 0, { eventId: event, content: 'ours' })]);
    const theirs = await post([start(id), message(id, 0, { eventId: event, content: 'theirs' })], { 'x-api-key': key });
    expect(theirs.body).toMatchObject({ accepted: 2, duplicates: 0, conflicts: 0 });
    const stored = await rows(id);
    expect(stored.map(({ content }) => content)).toEqual(['ours', 'theirs']);
    expect(new Set(stored.map((row) => row.org_id)).size).toBe(2);
  });

  it('the reward of one turn on several results stays unchanged', async () => {
    const id = randomUUID();
    const results = [1, 2].map((index) => message(id, index, { type: 'tool_result', callId: `c${index}`, reward: 0.5, isFinished: true }));
    await post([start(id), message(id, 0), ...results]);
    expect((await rows(id)).map(({ reward }) => reward)).toEqual([null, 0.5, 0.5]);
  });
});

describe('rewards that overflow figures', () => {
  it.each([1e308, -1e200, 1e155, 5e-324, 1e-165])('with %d its run is readable, and the next one has figures', async (reward) => {
    const runName = `far-${reward}`;
    const rollouts = [1, 2].flatMap(() => {
      const id = randomUUID();
      return [start(id, { runName, step: 1, metadata: { group_id: 'g' } }), message(id, 0, { reward, isFinished: true })];
    });
    const other = randomUUID();
    const near = [start(other, { runName: `near-${reward}`, step: 1 }), message(other, 0, { reward: 0.5, isFinished: true })];
    expect(await post([...rollouts, ...near])).toMatchObject({ status: 200, body: { rejected: [] } });
    expect(await server.request('GET', `/v1/runs/near-${reward}`)).toMatchObject({ status: 200, body: { avg_rollout_reward: 0.5 } });
    const run = encodeURIComponent(runName);
    const isNone = Math.abs(reward) > 1;
    expect(await server.request('GET', `/v1/runs/${run}`)).toMatchObject({ status: 200, body: { avg_rollout_reward: isNone ? null : 0 } });
    expect(await server.request('GET', `/v1/runs/${run}/summary`)).toMatchObject({ status: 200, body: { scored: isNone ? 0 : 2 } });
  });
});

describe('texts that a database cannot store', () => {
  const near = async () => {
    const id = randomUUID();
    await post([start(id, { runName: `near-${id}` }), message(id, 0, { reward: 0.5, isFinished: true })]);
    expect(await server.request('GET', `/v1/runs/near-${id}`)).toMatchObject({ status: 200, body: { avg_rollout_reward: 0.5 } });
  };
  const noise = Array.from({ length: 6_000 }, (_, at) => String.fromCharCode(0x4e00 + ((at * 7_919) % 20_000))).join('');

  it('names of tools and sessions are cut to the limit of an index, and the next upload has figures', async () => {
    const id = randomUUID();
    const calls = [message(id, 0, { type: 'tool_call', name: noise, callId: noise, content: '{}' })];
    await post([start(id, { runName: 'noise', step: 1, metadata: { session_id: noise } }), ...calls]);
    expect(await server.request('GET', '/v1/runs/noise/tools')).toMatchObject({
      status: 200,
      body: { tools: [{ tool: noise.slice(0, 256) }] },
    });
    await near();
  });

  it('a text is not cut within a character', async () => {
    const id = randomUUID();
    await post([start(id, { runName: 'halves', metadata: { stop_reason: `${'a'.repeat(255)}😀` } }), message(id, 0)]);
    expect(await server.request('GET', '/v1/runs/halves')).toMatchObject({ status: 200, body: { num_rollouts: 1 } });
    expect(await post([message(id, 1, { content: `x${'😀'.repeat(2_300_000)}` })])).toMatchObject({ status: 200, body: { accepted: 1 } });
    await near();
  });

  it('broken UTF-8 and lone surrogates are replaced, NUL is removed', async () => {
    const id = randomUUID();
    const [before, after] = JSON.stringify({
      events: [message(id, 0, { content: 'a#b\u0000', metadata: { 'k\u0000': 'v\u0000' } })],
    }).split('#');
    const body = Buffer.concat([Buffer.from(before!), Buffer.from([0xff, 0xc3, 0x28]), Buffer.from(`\\ud800${after!}`)]);
    expect(await send(body)).toMatchObject({ status: 200, body: { accepted: 1 } });
    expect(await rows(id)).toMatchObject([{ content: 'a\uFFFD\uFFFD(\uFFFDb', metadata: { k: 'v' } }]);
  });
});

describe('large messages', () => {
  it('three megabytes stay in the row, nine megabytes and images become objects', async () => {
    const id = randomUUID();
    const picture = Buffer.alloc(6_000, 7);
    const events = [
      message(id, 0, { content: 'm'.repeat(3_000_000) }),
      message(id, 1, { content: 'é'.repeat(4_500_000) }),
      message(id, 2, { content: `see ![image](data:image/png;base64,${picture.toString('base64')})` }),
    ];
    expect(await post([start(id), ...events])).toMatchObject({ status: 200, body: { accepted: 4 } });
    const [inline, large, seen] = await rows(id);
    expect(inline).toMatchObject({ blob_key: null, bytes: 3_000_000 });
    expect(inline!.content).toHaveLength(3_000_000);
    expect(large).toMatchObject({ bytes: 9_000_000, blob_key: expect.stringContaining(id) });
    expect(large!.content.length).toBeLessThan(100_000);
    const name = /palestra-object:([0-9a-f]{64}\.png)/.exec(seen!.content)?.[1];
    // Comparing nine million bytes one by one takes Vitest most of a minute.
    expect((await bytesAt(large!.blob_key!)).equals(Buffer.from('é'.repeat(4_500_000)))).toBe(true);
    expect(await bytesAt(large!.blob_key!.replace(/[^/]+$/, name!))).toEqual(picture);
  });
});

async function bytesAt(key: string): Promise<Buffer> {
  const blobs = new FileBlobStore(path.join(server.config.dataDir, 'blobs'), new UrlSigner(Buffer.alloc(32), () => server.url, Date.now));
  const { body } = await blobs.get(key);
  return buffer(body);
}

describe('an event with a value that PostgreSQL refuses', () => {
  /** Nothing that is known is refused after it was read: this is what keeps the rest of a batch when something is. */
  beforeAll(async () => {
    await server.database.pool.query(`
      CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'too odd' USING ERRCODE = '22003'; END $$;
      CREATE TRIGGER refuse BEFORE INSERT ON rollout_messages FOR EACH ROW WHEN (NEW.name = 'odd') EXECUTE FUNCTION refuse()`);
  });
  afterAll(() => server.database.pool.query('DROP FUNCTION refuse CASCADE'));

  it('is reported by each of its positions, and the others are stored', async () => {
    const id = randomUUID();
    const odd = message(id, 1, { name: 'odd' });
    const good = message(id, 3);
    const events = [{ eventType: 'message' }, start(id), message(id, 0), odd, good, odd, good];
    const { status, body } = await post(events, { prefer: 'return=representation' });
    expect(status).toBe(200);
    expect(body).toMatchObject({ accepted: 3, duplicates: 1 });
    expect(body.rejected.map(({ position }: { position: number }) => position)).toEqual([0, 3, 5]);
    expect(body.rejected[1]).toMatchObject({ event_id: odd.eventId, detail: expect.stringContaining('too odd') });
    expect(body.results.map((result: { status: string }) => result.status)).toEqual([
      'rejected',
      'accepted',
      'accepted',
      'rejected',
      'accepted',
      'rejected',
      'duplicate',
    ]);
    expect((await rows(id)).map(({ index }) => index)).toEqual([0, 3]);
  });

  it('is 422 when it is alone', async () => {
    const { status, body } = await post([message(randomUUID(), 0, { name: 'odd' })]);
    expect(status).toBe(422);
    expect(body).toMatchObject({ code: 'invalid_body', detail: [{ loc: ['body', 'events', 0] }] });
  });
});

it('token counts whose sum is no int4 are found, and their run can be read', async () => {
  const ids = [randomUUID(), randomUUID()];
  const tokens = { output_tokens: 2_147_483_647, tool_tokens: 5 };
  const events = ids.map((id, step) => start(id, { runName: 'many tokens', environment: 'a/b', step, metadata: { ...tokens, step } }));
  expect((await post([...events, ...ids.map((id) => message(id, 0, { isFinished: true }))])).status).toBe(200);
  const found = async (q: string) => {
    const { status, body } = await server.request(
      'GET',
      `/v1/runs/${encodeURIComponent('many tokens')}/rollouts?q=${encodeURIComponent(q)}`,
    );
    return status === 200 ? body.rollouts.length : body;
  };
  expect(await found('tok:>2147483650')).toBe(2);
  expect(await found('tok:<2147483650')).toBe(0);
  const moves = await server.request('GET', `/v1/runs/${encodeURIComponent('many tokens')}/moves?step=1`);
  expect(moves).toMatchObject({ status: 200 });
});
