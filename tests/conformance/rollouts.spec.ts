import { createServer } from 'node:http';
import { once } from 'node:events';
import { beforeAll, describe, expect, test } from 'vitest';
import { clientEnv } from './support/client-env.ts';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { runScript } from './support/python.ts';
import { readRecording } from './support/replay.ts';

/** What the SDK uploads is what `/v1` gives back, whatever happens on the way. */
interface Ids {
  every: string;
  many: string;
  wide: string;
}
interface StoredMessage {
  index: number;
  type: string;
  content: string | null;
  contentReference: string | null;
  summary: string | null;
  name: string | null;
  callId: string | null;
  reward: number | null;
  isFinished: boolean;
  metadata: Record<string, unknown>;
  nonfinite?: boolean;
}
interface StoredRollout {
  id: string;
  rolloutName: string;
  num_messages: number;
  reward: number | null;
  finished: boolean;
  task_index: number | null;
  step: number | null;
  metadata: Record<string, unknown>;
  task_spec: unknown;
  run_info: Record<string, unknown>;
  rollout_info: Record<string, unknown>;
  missing_indexes: number[];
  messages: StoredMessage[];
}

describe('rollouts uploaded by the SDK', () => {
  let palestra: SharedPalestra;
  beforeAll(async () => {
    palestra = await sharedPalestra();
  });

  async function read<T>(route: string): Promise<T> {
    const answer = await fetch(`${palestra.url}${route}`, { headers: { 'x-api-key': palestra.apiKey } });
    expect(answer.status, await answer.clone().text()).toBe(200);
    return (await answer.json()) as T;
  }

  function assertEveryType({ messages, ...rollout }: StoredRollout): void {
    expect(rollout).toMatchObject({
      rolloutName: 'every-type',
      metadata: { step: 3, loss: null, best: null, nulkey: 'nulvalue' },
      task_spec: { id: 7, nested: { list: [1, null, 2.5] } },
      run_info: { model_name: 'policy-7b', run_type: 'train' },
      rollout_info: { task_index: 7, current_step: 3 },
      task_index: 7,
      num_messages: 9,
      finished: true,
      missing_indexes: [],
    });
    expect(messages.map(({ index }) => index)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
    expect(messages.map(({ type }) => type)).toEqual([
      'system_message',
      'user_message',
      'reasoning',
      'assistant_message',
      'tool_call',
      'tool_result',
      'tool_result',
      'tool_result',
      'assistant_message',
    ]);
    expect(messages[0]).toMatchObject({ content: 'be brief', isFinished: false, metadata: {} });
    expect(messages[1]).toMatchObject({ content: 'Wer war es? ü 你 😀 \u001b[31mred\u001b[0m', metadata: { turn: 0 } });
    expect(messages[2]).toMatchObject({ content: 'think', summary: 'short', contentReference: 'reasoning:1' });
    expect(messages[4]).toMatchObject({ content: '{"place": "attic"}', name: 'search', callId: 'c1' });
    expect(messages[5]).toMatchObject({ content: '', callId: 'c1', reward: 0.25 });
    expect(messages[6]).toMatchObject({ content: 'lone \\udcff surrogate', reward: null, nonfinite: true });
    expect(messages[7]).toMatchObject({ content: 'not a number', reward: null, metadata: { loss: null }, nonfinite: true });
    expect(messages[8]).toMatchObject({ content: 'It was the gardener.', reward: 1, isFinished: true });
  }

  test.each(['v167', 'v112'] as const)('every type of event is read back equal (%s)', async (interpreter) => {
    const run = `every-type-${interpreter}`;
    const ids = (await runScript(interpreter, 'rollout_upload.py', [run, 'palestra/echo'], clientEnv(palestra))) as Ids;
    assertEveryType(await read<StoredRollout>(`/v1/rollouts/${ids.every}`));

    const many = await read<StoredRollout>(`/v1/rollouts/${ids.many}`);
    expect(many.messages.map(({ content }) => content)).toEqual(Array.from({ length: 300 }, (_, index) => `message ${index}`));
    expect(many).toMatchObject({ num_messages: 300, reward: 0.5, finished: true });

    const wide = await read<StoredRollout>(`/v1/rollouts/${ids.wide}`);
    expect(wide.messages[0]!.content).toBe('é'.repeat(1_500_000));

    const listed = () => read<{ runs: { id: string; name: string; num_rollouts: number }[]; total: number }>(`/v1/runs?search=${run}`);
    await expect.poll(listed).toMatchObject({ total: 1, runs: [{ num_rollouts: 3 }] });
    const { runs } = await listed();
    const list = await read<{ rollouts: { id: string }[]; total: number }>(`/v1/runs/${runs[0]!.id}/rollouts`);
    expect(list.rollouts.map(({ id }) => id).toSorted()).toEqual([ids.every, ids.many, ids.wide].toSorted());
  });

  test('a server that stores and then answers 503 makes no duplicates and loses nothing', async () => {
    const proxy = await startForgetfulProxy(palestra.url);
    try {
      const env = { ...clientEnv(palestra), OPENREWARD_API_URL: proxy.url };
      const ids = (await runScript('v167', 'rollout_upload.py', ['forgetful', 'palestra/echo'], env)) as Ids;
      assertEveryType(await read<StoredRollout>(`/v1/rollouts/${ids.every}`));
      const many = await read<StoredRollout>(`/v1/rollouts/${ids.many}`);
      expect(many.messages.map(({ index }) => index)).toEqual(Array.from({ length: 300 }, (_, index) => index));
      expect(proxy.forgotten()).toBeGreaterThan(3);
    } finally {
      await proxy.stop();
    }
  });

  test('the recorded edge cases are stored, twice sent, once kept', async () => {
    const posts = readRecording('rollout-edge-cases').filter(({ method }) => method === 'POST');
    expect(posts).toHaveLength(4);
    const ids = new Set<string>();
    for (const { body } of [...posts, ...posts]) {
      const answer = await fetch(`${palestra.url}/v1/rollouts`, {
        method: 'POST',
        headers: { 'x-api-key': palestra.apiKey, 'content-type': 'application/json' },
        body,
      });
      expect(answer.status, await answer.clone().text()).toBeGreaterThanOrEqual(200);
      expect(answer.status).toBeLessThan(300);
      for (const [, id] of body.matchAll(/"rolloutEventId": "([^"]+)"/g)) ids.add(id!);
    }
    expect(ids.size).toBeGreaterThan(1);
    for (const id of ids) {
      const rollout = await read<StoredRollout>(`/v1/rollouts/${id}`);
      const sent = posts.flatMap(({ body }) => [...body.matchAll(new RegExp(`"index": (\\d+), "rolloutEventId": "${id}"`, 'g'))]);
      expect(rollout.messages.map(({ index }) => index)).toEqual(sent.map(([, index]) => Number(index)).toSorted((a, b) => a - b));
    }
  });
});

interface Proxy {
  url: string;
  /** How many acknowledged uploads were answered 503. */
  forgotten(): number;
  stop(): Promise<void>;
}

/** Passes every upload on, and then answers the first try of each with 503, as a lost acknowledgement looks to a client. */
async function startForgetfulProxy(target: string): Promise<Proxy> {
  const seen = new Set<string>();
  let forgotten = 0;
  const server = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const body = Buffer.concat(chunks);
      const headers = Object.fromEntries(
        Object.entries(request.headers).filter(([name]) => !['host', 'connection', 'content-length'].includes(name)),
      ) as Record<string, string>;
      const answer = await fetch(`${target}${request.url}`, { method: request.method, headers, body: body.length > 0 ? body : null });
      const text = await answer.text();
      const key = body.toString();
      const forget = request.method === 'POST' && answer.ok && !seen.has(key);
      if (forget) forgotten += 1;
      seen.add(key);
      response.writeHead(forget ? 503 : answer.status, { 'content-type': 'application/json' });
      response.end(forget ? '{"detail":"lost"}' : text);
    })().catch((error: unknown) => response.destroy(error as Error));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}`,
    forgotten: () => forgotten,
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
