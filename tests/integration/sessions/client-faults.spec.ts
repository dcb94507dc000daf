import { buffer } from 'node:stream/consumers';
import { PalestraClient } from '@palestra/client';
import { defineEnvironment, type RunningServer, serve, tool, z } from '@palestra/environment-kit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type FaultProxy, startFaultProxy } from '../../support/fault-proxy.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';

/**
 * The TypeScript client through a proxy that cuts and stalls connections, answers 429, 502 and 503 in the place of the service, and replaces
 * responses that the service believes delivered: it loses and duplicates nothing.
 */
const EPISODES = 16;
const AT_ONCE = 8;
const CALLS = 4;
const MESSAGES = 10;
/** Of connections. */
const FAULTS = { cut: 0.12, stall: 0.1, refuse: 0.12, replace: 0.12 };

const runs = new Map<string, number>();
const counted = defineEnvironment({
  name: 'counted',
  splits: ['train'],
  tasks: () => [{ id: 0 }],
  prompt: () => 'count',
  tools: {
    work: tool({
      description: 'Must run once for each id.',
      input: z.object({ id: z.string() }),
      run: ({ id }) => {
        runs.set(id, (runs.get(id) ?? 0) + 1);
        return { content: id, reward: 1 };
      },
    }),
  },
});

let server: TestServer;
let upstream: RunningServer;
beforeAll(async () => {
  [server, upstream] = await Promise.all([sharedServer(), serve([counted])]);
  const source = { kind: 'remote', url: upstream.url };
  await server.request('POST', '/v1/environments', { body: { name: 'counted', isPrivate: true, source } });
});
afterAll(async () => {
  await server?.close();
  await upstream?.close();
});

/** A client that reaches the service through a proxy with faults. */
async function throughFaults(seed: number): Promise<{ proxy: FaultProxy; client: PalestraClient }> {
  const proxy = await startFaultProxy({ targets: [Number(new URL(server.url).port)], seed, ...FAULTS });
  return { proxy, client: new PalestraClient({ url: proxy.url, apiKey: server.apiKey, uploads: { maxBatchEvents: 8, maxAgeMs: 20 } }) };
}

interface Played {
  sid: string;
  rollout: string;
  results: string[];
}

/** Every second session is opened in one request. */
async function playEpisode(client: PalestraClient, run: string, name: string, isOneRequest: boolean): Promise<Played> {
  const task = { environment: `${server.orgName}/counted`, split: 'train', index: 0 };
  const session = isOneRequest ? client.attach((await client.sessions.open(task)).sid) : await client.session(task);
  const rollout = await client.rollouts.start({ runName: run, rolloutName: name });
  const results: string[] = [];
  for (let call = 0; call < CALLS; call += 1) {
    const output = await session.call('work', { id: `${name}/${call}` });
    results.push(...output.blocks.map((block) => (block.type === 'text' ? block.text : '')));
  }
  for (let message = 0; message < MESSAGES; message += 1) await rollout.log({ type: 'assistant_message', content: String(message) });
  await session.close();
  return { sid: session.sid, rollout: rollout.id, results };
}

/** All elements of `items`, `AT_ONCE` at a time. */
async function inParallel<T, R>(items: T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const left = items.entries();
  const worker = async () => {
    for (const [index, item] of left) results[index] = await work(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return results;
}

test('calls run once, events are stored once, and exports are complete', async () => {
  const seen = { cut: 0, stalled: 0, refused: 0, replaced: 0 };
  const played: (Played & { name: string; run: string })[] = [];
  // Until each fault has happened.
  for (let round = 0; round < 6 && Object.values(seen).includes(0); round += 1) {
    const { proxy, client } = await throughFaults(round + 1);
    const run = `faults ${round}`;
    const names = Array.from({ length: EPISODES }, (_, episode) => `${round}/${episode}`);
    const episodes = await inParallel([...names.entries()], async ([index, name]) => ({
      ...(await playEpisode(client, run, name, index % 2 === 0)),
      name,
      run,
    }));
    played.push(...episodes);
    expect(await client.close()).toEqual({ stored: EPISODES * (MESSAGES + 1), unsent: 0, error: null });
    for (const kind of ['cut', 'stalled', 'refused', 'replaced'] as const) seen[kind] += proxy.counts[kind];
    await proxy.close();
  }
  expect(Object.values(seen).filter((count) => count === 0)).toEqual([]);

  const expected = played.flatMap(({ name }) => Array.from({ length: CALLS }, (_, call) => `${name}/${call}`));
  expect(played.flatMap(({ results }) => results)).toEqual(expected);
  expect(Object.fromEntries(runs)).toEqual(Object.fromEntries(expected.map((id) => [id, 1])));
  for (const { sid, rollout, run } of played) {
    const { body: calls } = await server.request('GET', `/v1/sessions/${sid}/calls`);
    expect(calls.calls).toHaveLength(CALLS);
    expect((await server.request('GET', `/v1/sessions/${sid}`)).body.state).toBe('closed');
    const { body: stored } = await server.request('GET', `/v1/rollouts/${rollout}`);
    expect([run, stored.messages.map(({ content }: { content: string }) => content)]).toEqual([
      run,
      Array.from({ length: MESSAGES }, (_, message) => String(message)),
    ]);
  }
});

test('a download continues after every fault and has each byte once', async () => {
  const direct = new PalestraClient({ url: server.url, apiKey: server.apiKey });
  const rollout = await direct.rollouts.start({ runName: 'download' });
  for (let index = 0; index < 20; index += 1) await rollout.log({ type: 'assistant_message', content: `${index} `.repeat(5_000) });
  await direct.rollouts.flush();
  const { id } = await direct.rolloutExports.create({ run: 'download', format: 'jsonl' });
  await expect.poll(async () => (await direct.rolloutExports.get(id)).state).toBe('complete');
  const { name, size } = (await direct.rolloutExports.get(id)).files.find((file) => file.name.startsWith('data/'))!;
  expect(size).toBeGreaterThan(100_000);
  const read = async (client: PalestraClient) => buffer(await client.rolloutExports.download(id, name));
  const whole = await read(direct);
  await direct.close();

  // Every connection is cut within the first 3 kB of its answers.
  let cuts = 0;
  for (let seed = 1; seed <= 5; seed += 1) {
    const proxy = await startFaultProxy({ targets: [Number(new URL(server.url).port)], seed, cut: 0.7 });
    const client = new PalestraClient({ url: proxy.url, apiKey: server.apiKey });
    expect((await read(client)).equals(whole)).toBe(true);
    cuts += proxy.counts.cut;
    await client.close();
    await proxy.close();
  }
  expect(cuts).toBeGreaterThan(0);
});
