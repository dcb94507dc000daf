import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sharedServer, type TestServer } from '../../support/server.ts';

/** Rollouts that other tools recorded, by the built command line and by OTLP, read back from the API. */
const CLI = path.resolve(import.meta.dirname, '../../../apps/cli/dist/main.js');
const fixture = (name: string) => path.resolve(import.meta.dirname, '../../../libs/rollouts/src/import/fixtures', name);
let server: TestServer;
let folder: string;

beforeAll(async () => {
  server = await sharedServer();
  folder = await mkdtemp(path.join(tmpdir(), 'palestra-imports-'));
});
afterAll(async () => {
  await server?.close();
  await rm(folder, { recursive: true, force: true });
});

async function palestra(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const env = { ...process.env, PALESTRA_URL: server.url, PALESTRA_API_KEY: server.apiKey };
  return promisify(execFile)(process.execPath, [CLI, 'rollouts', 'import', ...args], { env }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  );
}

/** The figures behind the file's name and format. */
const figures = (stdout: string, row = 1) =>
  stdout
    .split('\n')
    [row]!.split(/\s{2,}/)
    .slice(2)
    .map(Number);
/** Rows of the organisation of this file; a message has one by its head. */
const count = async (table: 'rollout_heads' | 'rollout_messages') => {
  const join = table === 'rollout_heads' ? '' : 'JOIN rollout_messages m ON m.rollout_seq = h.seq';
  const { rows } = await server.database.pool.query(
    `SELECT count(*)::int AS n FROM rollout_heads h ${join} JOIN organisations o ON o.id = h.org_id WHERE o.name = $1`,
    [server.orgName],
  );
  return rows[0].n as number;
};
const stored = async (run: string) => {
  const { rows } = await server.database.pool.query(
    `SELECT h.id, h.finished, h.messages, m.start, ARRAY(SELECT x.reward FROM rollout_messages x WHERE x.day = h.day AND x.rollout_seq = h.seq ORDER BY x.index) AS rewards
     FROM rollout_heads h JOIN runs ON runs.seq = h.run_seq JOIN rollout_starts m ON m.rollout_seq = h.seq
     JOIN organisations o ON o.id = h.org_id WHERE runs.name = $1 AND o.name = $2 ORDER BY h.seq`,
    [run, server.orgName],
  );
  return rows as { id: string; finished: boolean; messages: number; start: any; rewards: (number | null)[] }[];
};

/** Events of our own format, with information in its start and an update of it. */
function ours(): object[] {
  const id = 'dddddddd-dddd-4ddd-8ddd-dddddddddddd';
  const timestamp = 1_770_000_000_000;
  const message = { eventType: 'message', eventId: 'eeeeeeee-eeee-4eee-8eee-eeeeeeeeeeee', rolloutEventId: id, timestamp, index: 0 };
  return [
    { eventType: 'rollout', eventId: id, timestamp, runName: 'ours', rolloutName: null, rollout_info: { early: 1, step: 1 } },
    { ...message, type: 'user_message', content: 'x', isFinished: true, metadata: {} },
    { eventType: 'rollout_update', eventId: id, timestamp: timestamp + 1, rollout_info: { step: 2, list: [1, null] } },
  ];
}

describe('palestra rollouts import', () => {
  it('refuses an unknown format, a missing file, and a file without a run', async () => {
    const odd = path.join(folder, 'odd.csv');
    await writeFile(odd, 'a,b\n1,2\n');
    expect(await palestra(odd, '--run', 'x')).toMatchObject({ code: 2, stderr: expect.stringContaining('unknown format') });
    expect(await palestra(path.join(folder, 'none'), '--run', 'x')).toMatchObject({ code: 2 });
    expect(await palestra(fixture('openai.jsonl'))).toMatchObject({ code: 2, stderr: expect.stringContaining('Pass --run') });
  });

  it('sends nothing on a dry run', async () => {
    const before = await count('rollout_heads');
    expect(await palestra(fixture('arithmetic.eval'), '--run', 'dry', '--dry-run')).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('Nothing was uploaded.'),
    });
    expect(await count('rollout_heads')).toBe(before);
  });

  it('stores an Inspect log, and a second import changes nothing', async () => {
    const first = await palestra(fixture('arithmetic.eval'), '--run', 'inspect');
    expect(first).toMatchObject({ code: 0 });
    expect(figures(first.stdout)).toEqual([6, 38, 38, 0, 0, 0, 0]);
    const messages = await count('rollout_messages');
    const second = await palestra(fixture('arithmetic.eval'), '--run', 'inspect');
    expect(figures(second.stdout)).toEqual([6, 38, 0, 38, 0, 0, 0]);
    expect(await count('rollout_messages')).toBe(messages);
    // A recording is over: its silence is no alert.
    expect((await server.request('GET', '/v1/runs/inspect')).body).toMatchObject({ finished: true });
    const rollouts = await stored('inspect');
    expect(rollouts).toHaveLength(6);
    const failed = rollouts.filter(({ start }) => start.metadata.stop_reason === 'infra_error');
    expect(failed.map(({ finished, rewards }) => [finished, rewards])).toEqual([
      [false, [null, null]],
      [false, [null, null]],
    ]);
  });

  it.each(['arithmetic.json.log', 'openai.jsonl', 'results.jsonl', 'ours.jsonl'])(
    '%s is there already a second time, starts and updates too',
    async (name) => {
      const file = name === 'ours.jsonl' ? path.join(folder, name) : fixture(name);
      if (name === 'ours.jsonl')
        await writeFile(
          file,
          ours()
            .map((event) => `${JSON.stringify(event)}\n`)
            .join(''),
        );
      const args = [file, '--run', `twice ${name}`];
      const [, events, accepted, ...others] = figures((await palestra(...args)).stdout);
      expect([events, accepted, others.slice(0, 3)]).toEqual([expect.any(Number), events, [0, 0, 0]]);
      const again = figures((await palestra(...args)).stdout);
      expect(again.slice(1, 6)).toEqual([events, 0, events, 0, 0]);
    },
  );

  it('stores history: none of its events counts as late, unlike late events of a trainer', async () => {
    const late = async (run: string) => {
      const { rows } = await server.database.pool.query(
        `SELECT c.accepted::int, c.late::int FROM ingest_counters c JOIN runs ON runs.seq = c.run_seq JOIN organisations o ON o.id = runs.org_id
         WHERE runs.name = $1 AND o.name = $2`,
        [run, server.orgName],
      );
      return rows[0] ?? null;
    };
    expect(await palestra(fixture('arithmetic.eval'), '--run', 'history')).toMatchObject({ code: 0 });
    await expect.poll(() => late('history')).toEqual({ accepted: 38, late: 0 });
    const start = {
      eventType: 'rollout',
      eventId: 'cccccccc-cccc-4ccc-8ccc-cccccccccccc',
      timestamp: 1_770_000_000_000,
      runName: 'delayed',
    };
    expect(await server.request('POST', '/v1/rollouts', { body: { events: [start] } })).toMatchObject({ status: 200 });
    await expect.poll(() => late('delayed')).toEqual({ accepted: 1, late: 1 });
  });

  it('reports bad lines by their number, stores the others and exits with 1', async () => {
    const answer = await palestra(fixture('openai.jsonl'), fixture('results.jsonl'), '--run', 'mixed');
    expect(answer.code).toBe(1);
    expect(figures(answer.stdout, 1)).toEqual([6, 26, 26, 0, 0, 0, 4]);
    expect(figures(answer.stdout, 2)).toEqual([4, 22, 22, 0, 0, 0, 0]);
    expect(answer.stderr).toMatch(/openai\.jsonl, line 4: Not valid JSON/);
    expect(answer.stderr).toMatch(/openai\.jsonl, line 5: message 0 has no role/);
  });

  it('reports events that the server refuses by their line', async () => {
    const file = path.join(folder, 'refused.jsonl');
    await writeFile(file, `${JSON.stringify({ messages: [{ role: 'user', content: 'x' }] })}\n`);
    const answer = await palestra(file, '--format', 'openai', '--run', 'n'.repeat(20_000));
    expect(answer.code).toBe(1);
    expect(answer.stderr).toMatch(/refused\.jsonl, line 1: runName is longer than 16384 characters/);
  });
});

describe('POST /v1/traces', () => {
  const nano = (ms: number) => String(BigInt(1_770_000_000_000 + ms) * 1_000_000n);
  const text = (key: string, value: string) => ({ key, value: { stringValue: value } });
  const chat = (trace: string, spanId: string, from: number, input: object[], output: string, more: object[] = []) => ({
    traceId: trace.repeat(32),
    spanId: spanId.repeat(16),
    parentSpanId: 'f'.repeat(16),
    name: 'chat',
    startTimeUnixNano: nano(from),
    endTimeUnixNano: nano(from + 10),
    attributes: [
      text('gen_ai.operation.name', 'chat'),
      text('gen_ai.input.messages', JSON.stringify(input)),
      text('gen_ai.output.messages', JSON.stringify([{ role: 'assistant', parts: [{ type: 'text', content: output }] }])),
      ...more,
    ],
  });
  const user = { role: 'user', parts: [{ type: 'text', content: 'hi' }] };
  const body = (spans: object[], run = 'traced') => ({
    resourceSpans: [{ resource: { attributes: [text('palestra.run', run)] }, scopeSpans: [{ spans }] }],
  });
  const post = (value: unknown, headers = {}) => server.request('POST', '/v1/traces', { body: value, headers });

  it('stores the span of an episode with its earlier model calls, which name the conversation', async () => {
    const name = text('gen_ai.conversation.id', 'long talk');
    await post(body([chat('c', '1', 0, [], 'said', [name])], 'in pieces'));
    const root = { ...chat('c', '2', 0, [], ''), parentSpanId: '', attributes: [{ key: 'palestra.reward', value: { doubleValue: 0.5 } }] };
    await post(body([root], 'in pieces'));
    expect(await server.request('GET', '/v1/runs/in%20pieces')).toMatchObject({ body: { num_rollouts: 1, avg_rollout_reward: 0.5 } });
  });

  it('refuses a missing key, another content type, and an invalid request', async () => {
    expect(await post(body([]), { 'x-api-key': '' })).toMatchObject({ status: 401 });
    expect(await post('x', { 'content-type': 'text/plain' })).toMatchObject({ status: 415, body: { code: 'unsupported_media_type' } });
    expect(await post('{"resourceSpans":')).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
    expect(await post({ resourceSpans: {} })).toMatchObject({ status: 400 });
    expect(await post('\u0007\u0007\u0007', { 'content-type': 'application/x-protobuf' })).toMatchObject({
      status: 400,
      body: { code: 'invalid_request' },
    });
  });

  it('stores a trace in parts as one rollout, with its times, once', async () => {
    const first = chat('a', '1', 0, [user], 'hello', [{ key: 'palestra.reward', value: { doubleValue: 0.25 } }]);
    const second = chat('a', '2', 20, [user, { role: 'assistant', parts: [{ type: 'text', content: 'hello' }] }, user], 'again');
    expect(await post(body([first]))).toMatchObject({ status: 200, body: {} });
    await Promise.all([post(body([second])), post(body([first, second])), post(body([first]))]);
    const [rollout] = await stored('traced');
    expect(rollout).toMatchObject({ messages: 4, rewards: [null, 0.25, null, null] });
    const { rows } = await server.database.pool.query(
      'SELECT x.index, x.content, x.sent_at FROM rollout_messages x JOIN rollout_heads h ON h.seq = x.rollout_seq WHERE h.id = $1 ORDER BY x.index',
      [rollout!.id],
    );
    expect(rows.map(({ index, content, sent_at: at }) => [index, content, Number(at) - 1_770_000_000_000])).toEqual([
      [0, 'hi', 0],
      [1, 'hello', 10],
      [2, 'hi', 20],
      [3, 'again', 30],
    ]);
  });

  it('reports rejected spans as OTLP does', async () => {
    const bad = { ...chat('b', '1', 0, [user], 'x'), traceId: 'none' };
    const http = { ...chat('b', '2', 0, [user], 'x'), attributes: [text('http.request.method', 'GET')] };
    const { body: answer } = await post(body([bad, http, chat('b', '3', 0, [user], 'kept')], 'partial'));
    expect(answer).toEqual({
      partialSuccess: { rejectedSpans: '1', errorMessage: expect.stringMatching(/traceId must be.*; 1 spans without GenAI/) },
    });
    const { body: refused } = await post(body([chat('c', '1', 0, [user], 'x')], 'n'.repeat(20_000)));
    expect(refused.partialSuccess).toMatchObject({ rejectedSpans: '1', errorMessage: expect.stringContaining('runName') });
    expect(await stored('partial')).toHaveLength(1);
  });

  it('accepts protobuf and responds in it', async () => {
    const varint = (value: number): number[] => (value < 128 ? [value] : [(value & 127) | 128, ...varint(value >>> 7)]);
    const bytes = (field: number, value: Uint8Array | string) => {
      const data = Buffer.from(value);
      return Buffer.concat([Buffer.from([...varint((field << 3) | 2), ...varint(data.length)]), data]);
    };
    const fixed = (field: number, value: bigint) => {
      const data = Buffer.alloc(8);
      data.writeBigUInt64LE(value);
      return Buffer.concat([Buffer.from([(field << 3) | 1]), data]);
    };
    const attribute = (field: number, key: string, value: string) =>
      bytes(field, Buffer.concat([bytes(1, key), bytes(2, bytes(1, value))]));
    const span = Buffer.concat([
      bytes(1, Buffer.alloc(16, 0xdd)),
      bytes(2, Buffer.alloc(8, 0x11)),
      bytes(5, 'chat'),
      fixed(7, 1_770_000_000_000_000_000n),
      fixed(8, 1_770_000_000_010_000_000n),
      attribute(9, 'gen_ai.operation.name', 'chat'),
      attribute(9, 'gen_ai.output.messages', JSON.stringify([{ role: 'assistant', parts: [{ type: 'text', content: 'binary' }] }])),
    ]);
    const send = (spans: Buffer[]) =>
      fetch(`${server.url}/v1/traces`, {
        method: 'POST',
        headers: { 'x-api-key': server.apiKey, 'content-type': 'application/x-protobuf' },
        body: bytes(
          1,
          Buffer.concat([bytes(1, attribute(1, 'palestra.run', 'binary')), bytes(2, Buffer.concat(spans.map((one) => bytes(2, one))))]),
        ),
      });
    const whole = await send([span]);
    expect([whole.status, whole.headers.get('content-type'), (await whole.arrayBuffer()).byteLength]).toEqual([
      200,
      'application/x-protobuf',
      0,
    ]);
    const partial = Buffer.from(await (await send([bytes(5, 'no ids')])).arrayBuffer());
    expect(partial.toString()).toContain('traceId must be');
    expect(await stored('binary')).toMatchObject([{ messages: 1, finished: true }]);
  });
});

describe('Prefer on POST /v1/rollouts', () => {
  const id = 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa';
  const message = (more: object = {}) => ({
    eventType: 'message',
    eventId: 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb',
    rolloutEventId: id,
    timestamp: 1_770_000_000_000,
    index: 0,
    type: 'user_message',
    content: 'x',
    isFinished: false,
    metadata: {},
    ...more,
  });
  const post = (events: object[], prefer?: string) =>
    server.request('POST', '/v1/rollouts', { body: { events }, headers: prefer ? { prefer } : {} });

  it('return=representation returns one result per event', async () => {
    const start = { eventType: 'rollout', eventId: id, timestamp: 1, runName: 'preferred' };
    const first = await post([start, message(), message(), { eventType: 'odd' }], 'respond-async, return=representation; foo=1');
    expect(first.headers.get('preference-applied')).toBe('return=representation');
    expect(first.body).toMatchObject({ accepted: 2, duplicates: 1, conflicts: 0 });
    expect(first.body.results.map(({ status }: { status: string }) => status)).toEqual(['accepted', 'accepted', 'duplicate', 'rejected']);
    const second = await post([message({ content: 'other' })], 'return=representation');
    expect(second.body).toMatchObject({ accepted: 0, duplicates: 1, conflicts: 1, results: [{ status: 'conflict' }] });
  });

  it('return=minimal, the default, returns none', async () => {
    const told = await post([message()], 'return=minimal');
    expect(told.headers.get('preference-applied')).toBe('return=minimal');
    expect(told.body).toEqual({ accepted: 0, duplicates: 1, conflicts: 0, rejected: [] });
    const plain = await post([message()], 'wait=10');
    expect(plain.headers.has('preference-applied')).toBe(false);
    expect(plain.body).not.toHaveProperty('results');
  });
});
