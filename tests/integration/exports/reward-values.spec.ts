import { randomUUID } from 'node:crypto';
import { loadZstd } from '@palestra/kit/zstd';
import { parquetReadObjects } from 'hyparquet';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { settled } from '../../support/derived-rows.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';

/** The table of docs/reference/metrics.md#reward-values, row by row: what is stored, shown, averaged and exported. */
let server: TestServer;
const RUN = `reward values ${randomUUID()}`;
const zstd = await loadZstd();

interface Case {
  /** As JSON text: what Python's `json.dumps` writes, and what it does not. */
  sent: string;
  /** Of the message, as the API and exports give it. */
  message: number | null;
  reward: number | null;
  nonfinite?: true;
}
const MESSAGES: Case[] = [
  { sent: '0.5', message: 0.5, reward: 0.5 },
  { sent: 'null', message: null, reward: null },
  { sent: 'NaN', message: null, reward: null, nonfinite: true },
  { sent: 'Infinity', message: null, reward: null, nonfinite: true },
  { sent: '-Infinity', message: null, reward: null, nonfinite: true },
  { sent: '1e400', message: null, reward: null, nonfinite: true },
  { sent: '1e39', message: 1e39, reward: null, nonfinite: true },
  { sent: '-1e39', message: -1e39, reward: null, nonfinite: true },
  { sent: `1${'0'.repeat(60)}`, message: 1e60, reward: null, nonfinite: true },
  { sent: '3e38', message: 3e38, reward: 3e38 },
  { sent: '1e-60', message: 1e-60, reward: 0 },
  { sent: '9007199254740993', message: 9_007_199_254_740_992, reward: 9_007_199_254_740_992 },
  { sent: '0.1000000000000000055', message: 0.1, reward: 0.1 },
];
/** `message`: `reward_reported` of the rollout. */
const TOTALS: Case[] = [
  { sent: '0.5', message: 0.5, reward: 0.5 },
  { sent: '0', message: 0, reward: null },
  { sent: 'NaN', message: null, reward: null, nonfinite: true },
  { sent: '-Infinity', message: null, reward: null, nonfinite: true },
  { sent: '1e400', message: null, reward: null, nonfinite: true },
  { sent: '1e39', message: null, reward: null, nonfinite: true },
  { sent: '3e38', message: 3e38, reward: 3e38 },
  { sent: '1e-60', message: 0, reward: null },
  { sent: '9007199254740993', message: 9_007_199_254_740_992, reward: 9_007_199_254_740_992 },
  { sent: '"0.5"', message: null, reward: null },
  { sent: 'true', message: null, reward: null },
];
const ids = new Map<string, string>();

async function post(events: string[]) {
  const answer = await fetch(`${server.url}/v1/rollouts`, {
    method: 'POST',
    headers: { 'x-api-key': server.apiKey, 'content-type': 'application/json' },
    body: `{"events":[${events.join(',')}]}`,
  });
  expect(answer.status).toBe(200);
  return (await answer.json()) as { accepted: number; rejected: { position: number; detail: string }[] };
}
const startOf = (id: string, metadata = '{}') =>
  `{"eventType":"rollout","eventId":"${id}","timestamp":1,"runName":${JSON.stringify(RUN)},"metadata":${metadata}}`;
const resultOf = (id: string, index: number, reward: string) =>
  `{"eventType":"message","eventId":"${randomUUID()}","rolloutEventId":"${id}","timestamp":2,"index":${index},"type":"assistant_message",` +
  `"content":"x","reward":${reward},"isFinished":false,"metadata":{}}`;

async function exported(format: string): Promise<any[]> {
  const { body } = await server.request('POST', '/v1/exports', { body: { run: RUN, format } });
  let view: any;
  await expect.poll(async () => (view = (await server.request('GET', `/v1/exports/${body.id}`)).body).state).toBe('complete');
  const bytes = Buffer.from(await (await fetch(view.files[0].url)).arrayBuffer());
  if (format === 'jsonl')
    return bytes
      .toString()
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  return parquetReadObjects({ file: new Uint8Array(bytes).buffer, compressors: { ZSTD: zstd.decompress } });
}

beforeAll(async () => {
  server = await sharedServer();
  const upload = async (key: string, ...events: ((id: string) => string)[]) => {
    const id = randomUUID();
    ids.set(key, id);
    expect((await post(events.map((event) => event(id)))).rejected).toEqual([]);
  };
  for (const { sent } of MESSAGES)
    await upload(
      `message ${sent}`,
      (id) => startOf(id),
      (id) => resultOf(id, 0, sent),
    );
  for (const { sent } of TOTALS)
    await upload(
      `total ${sent}`,
      (id) => startOf(id, `{"total_reward":${sent}}`),
      (id) => resultOf(id, 0, 'null'),
    );
  await upload(
    'message NaN beside 1',
    (id) => startOf(id),
    (id) => resultOf(id, 0, '1'),
    (id) => resultOf(id, 1, 'NaN'),
  );
  await upload(
    'total NaN beside 1',
    (id) => startOf(id, '{"total_reward":NaN}'),
    (id) => resultOf(id, 0, '1'),
  );
  await settled(server.database.pool, server.orgName);
});
afterAll(() => server?.close());

const read = async (key: string) => (await server.request('GET', `/v1/rollouts/${ids.get(key)}`)).body;
const messagesOf = async (key: string) => (await server.request('GET', `/v1/rollouts/${ids.get(key)}/messages`)).body.messages;

describe('the reward of a message', () => {
  test.each(MESSAGES)('$sent', async ({ sent, message, reward, nonfinite }) => {
    const [stored] = await messagesOf(`message ${sent}`);
    expect({ reward: stored.reward ?? null, nonfinite: stored.nonfinite ?? false }).toEqual({
      reward: message,
      nonfinite: nonfinite ?? false,
    });
    expect(await read(`message ${sent}`)).toMatchObject({ reward, flags: nonfinite ? ['nonfinite'] : [] });
  });

  test.each(['"1"', 'true', '[]'])('%s rejects its event by name', async (sent) => {
    const id = randomUUID();
    const answer = await post([resultOf(id, 0, sent), resultOf(id, 1, '1')]);
    expect(answer).toMatchObject({ accepted: 1, rejected: [{ position: 0, detail: 'reward must be a number.' }] });
  });

  test('one that is not finite leaves its rollout without a total', async () => {
    expect(await read('message NaN beside 1')).toMatchObject({ reward: null, flags: ['nonfinite'] });
  });
});

describe('a reported total without message rewards', () => {
  test.each(TOTALS)('$sent', async ({ sent, message, reward, nonfinite }) => {
    expect(await read(`total ${sent}`)).toMatchObject({ reward, reward_reported: message, flags: nonfinite ? ['nonfinite'] : [] });
  });

  test('beside message rewards their sum counts', async () => {
    expect(await read('total NaN beside 1')).toMatchObject({ reward: 1, reward_reported: null, flags: ['nonfinite'] });
  });
});

test('means have the scored rollouts only, and the flagged ones can be queried', async () => {
  const scored = [...MESSAGES, ...TOTALS].map(({ reward }) => reward).filter((reward) => reward !== null);
  const { body: run } = await server.request('GET', `/v1/runs/${encodeURIComponent(RUN)}`);
  const mean = [...scored, 1].reduce((sum, reward) => sum + reward, 0) / (scored.length + 1);
  expect(run).toMatchObject({ num_rollouts: ids.size, num_scored: scored.length + 1 });
  expect(run.avg_rollout_reward / mean).toBeCloseTo(1, 6);
  const { body: found } = await server.request('GET', `/v1/runs/${encodeURIComponent(RUN)}/rollouts?q=has%3Anonfinite`);
  expect(found.total).toBe([...MESSAGES, ...TOTALS].filter(({ nonfinite }) => nonfinite).length + 2);
});

test.each(['jsonl', 'parquet'])('exports as %s have the same values', { timeout: 120_000 }, async (format) => {
  const rows = new Map((await exported(format)).map((row) => [row.rollout_id, row]));
  expect(rows.size).toBe(ids.size);
  for (const { sent, message, reward, nonfinite } of MESSAGES) {
    const row = rows.get(ids.get(`message ${sent}`)!);
    expect([sent, row.reward, row.messages[0].reward, row.flags]).toEqual([sent, reward, message, nonfinite ? ['nonfinite'] : []]);
  }
  for (const { sent, message, reward } of TOTALS) {
    const row = rows.get(ids.get(`total ${sent}`)!);
    expect([sent, row.reward, row.reward_reported]).toEqual([sent, reward, message]);
  }
});
