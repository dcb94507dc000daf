import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SecretKeys } from '../../../apps/api/src/platform/secret-keys.ts';
import { openBlobStore } from '../../../apps/api/src/platform/storage.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { services } from '../store/sealing.world.ts';

/** Traces that come in pieces, to two API processes on one database. */
let servers: TestServer[];

beforeAll(async () => {
  const first = await startServer({ sealing: { finishedMs: 3_600_000, silentMs: 3_600_000 } });
  const { databaseUrl, dataDir, sealing } = first.config;
  servers = [first, await startServer({ databaseUrl, dataDir, sealing })];
});
afterAll(async () => {
  for (const server of servers.toReversed()) await server.close();
});

const text = (key: string, value: string) => ({ key, value: { stringValue: value } });
const parts = (role: string, content: string) => JSON.stringify([{ role, parts: [{ type: 'text', content }] }]);
const chat = (traceId: string, at: number) => ({
  traceId,
  spanId: (at + 1).toString(16).padStart(16, '0'),
  parentSpanId: 'f'.repeat(16),
  name: 'chat',
  startTimeUnixNano: `${1_770_000_000_000 + at * 100}000000`,
  endTimeUnixNano: `${1_770_000_000_050 + at * 100}000000`,
  attributes: [
    text('gen_ai.operation.name', 'chat'),
    text('gen_ai.input.messages', parts('user', `question ${at}`)),
    text('gen_ai.output.messages', parts('assistant', `answer ${at}`)),
  ],
});
async function send(to: TestServer, run: string, spans: object[]): Promise<void> {
  const resource = { attributes: [text('palestra.run', run)] };
  const answer = await fetch(`${to.url}/v1/traces`, {
    method: 'POST',
    headers: { 'x-api-key': servers[0]!.apiKey, 'content-type': 'application/json' },
    body: JSON.stringify({ resourceSpans: [{ resource, scopeSpans: [{ spans }] }] }),
  });
  expect([answer.status, await answer.json()]).toEqual([200, {}]);
}
const headsOf = async (run: string) =>
  (
    await servers[0]!.database.pool.query(
      'SELECT h.id, h.messages, h.max_index FROM rollout_heads h JOIN runs ON runs.seq = h.run_seq WHERE runs.name = $1',
      [run],
    )
  ).rows;
const messagesOf = async (id: string) => (await servers[0]!.request('GET', `/v1/rollouts/${id}`)).body.messages as any[];

describe('POST /v1/traces on two replicas', () => {
  it('assigns each position of a trace once when parts arrive on both replicas at the same time', async () => {
    const traces = Array.from({ length: 3 }, () => randomBytes(16).toString('hex'));
    const pieces = Array.from({ length: 24 }, (_, at) => at);
    // Trace after trace, so that both replicas are busy with the same one.
    for (const trace of traces) await Promise.all(pieces.map((at) => send(servers[at % 2]!, 'pieces', [chat(trace, at)])));
    const heads = await headsOf('pieces');
    expect(heads).toHaveLength(traces.length);
    for (const { id, messages, max_index } of heads) {
      expect([messages, max_index]).toEqual([48, 47]);
      const stored = await messagesOf(id);
      expect(stored.map(({ index }) => index)).toEqual(Array.from({ length: 48 }, (_, index) => index));
      expect(new Set(stored.map(({ content }) => content)).size).toBe(48);
    }
  });

  it('ignores a repeated part of a sealed trace, and appends a new one', async () => {
    const trace = randomBytes(16).toString('hex');
    await send(servers[0]!, 'sealed trace', [chat(trace, 0), chat(trace, 1)]);
    const [{ id }] = await headsOf('sealed trace');
    const { blobs } = await openBlobStore(
      servers[0]!.config,
      { url: 'http://127.0.0.1:1' },
      new SecretKeys('not used: nothing here signs a URL'),
    );
    const { sealing } = services(servers[0]!, blobs);
    await expect.poll(() => sealing.seal().then(({ sealed }) => sealed)).toBeGreaterThan(0);
    const before = await messagesOf(id);
    await send(servers[1]!, 'sealed trace', [chat(trace, 0)]);
    expect(await messagesOf(id)).toEqual(before);
    await send(servers[1]!, 'sealed trace', [chat(trace, 1), chat(trace, 2)]);
    const after = await messagesOf(id);
    expect(after.slice(0, 4).map(({ content }) => content)).toEqual(before.map(({ content }) => content));
    expect(after.map(({ index, content }) => [index, content]).slice(4)).toEqual([
      [4, 'question 2'],
      [5, 'answer 2'],
    ]);
    const { rows } = await servers[0]!.database.pool.query(
      'SELECT c.conflicts::int, c.late::int FROM ingest_counters c JOIN runs ON runs.seq = c.run_seq WHERE runs.name = $1',
      ['sealed trace'],
    );
    expect(rows.filter(({ conflicts, late }) => conflicts + late > 0)).toEqual([]);
  });
});
