import { SseParser } from '@palestra/kit/sse';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { createDatabase, startServer, type TestServer } from '../../support/server.ts';
import { eventsOf, seeded, type Seeded, strangerOf, upload } from './run-reads.world.ts';

const RUN = 'streamed';
const rollouts = seeded(RUN, { steps: 2, tasks: 2 }).map((one) => ({ ...one, failed: false }));

interface Told {
  event: string;
  data: any;
  at: number;
}

let database: Awaited<ReturnType<typeof createDatabase>>;
let writer: TestServer;
/** Another process on the same database, which learns of changes by NOTIFY. */
let reader: TestServer;
beforeAll(async () => {
  database = await createDatabase();
  writer = await startServer({ databaseUrl: database.url });
  reader = await startServer({ databaseUrl: database.url });
  await upload(writer, RUN, rollouts);
});
afterAll(async () => {
  await Promise.all([writer?.close(), reader?.close()]);
  await database?.drop();
});

/** Follows a stream of the second process until the test ends. */
async function follow(query: string) {
  const aborted = new AbortController();
  onTestFinished(() => aborted.abort());
  const answer = await fetch(`${reader.url}/v1/stream?${query}`, { headers: { 'x-api-key': writer.apiKey }, signal: aborted.signal });
  expect(answer.status).toBe(200);
  const told: Told[] = [];
  const parser = new SseParser();
  const decoder = new TextDecoder();
  void (async () => {
    for await (const piece of answer.body!) {
      const text = decoder.decode(piece as Uint8Array, { stream: true }).replaceAll(/^id:.*\r\n/gm, '');
      for (const { event, data } of parser.push(text))
        if (event !== 'heartbeat') told.push({ event, data: JSON.parse(data), at: Date.now() });
    }
  })().catch(() => {});
  const of = (event: string) => told.filter((one) => one.event === event);
  return { told, of };
}

const open: Seeded = { ...seeded('open')[0]!, step: 1, task: 9, reward: 1 };
const post = async (events: object[]) => expect((await writer.request('POST', '/v1/rollouts', { body: { events } })).status).toBe(200);
/** Events of a long rollout: none of them is finished. */
const talk = (index: number) => ({
  eventType: 'message',
  eventId: crypto.randomUUID(),
  rolloutEventId: open.id,
  timestamp: 2_000 + index,
  index,
  type: 'assistant_message',
  content: `word ${index}`,
  isFinished: false,
  metadata: {},
});
/** At most one per second as a reader sees it; a late event is nearer to the next one. */
const calm = (told: Told[]) => told.length < 2 || told.length - 1 <= (told.at(-1)!.at - told[0]!.at + 1_500) / 1_000;

describe('GET /v1/stream', () => {
  it('rejects an unknown rollout, one of another organisation and an invalid id', async () => {
    const stranger = await strangerOf(writer);
    for (const [id, headers] of [
      [rollouts[0]!.id, stranger],
      [crypto.randomUUID(), {}],
      ['x', {}],
    ] as const)
      expect(
        await reader.request('GET', `/v1/stream?rollout=${id}`, { headers: { 'x-api-key': writer.apiKey, ...headers } }),
      ).toMatchObject({
        status: 404,
        body: { code: 'rollout_not_found' },
      });
  });

  it('sends the state of the shown rollout only, from another process, once a second, until it is idle', async () => {
    await post([eventsOf(RUN, open)[0]!]);
    const { of } = await follow(`run=${RUN}&rollout=${open.id}`);
    const alone = await follow(`rollout=${open.id}`);
    const unopened = await follow(`run=${RUN}`);
    await expect.poll(() => of('rollout').at(0)?.data).toEqual({ id: open.id, msgs: 0, state: 'live' });
    for (let index = 0; index < 30; index += 1) {
      await post([talk(index)]);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    await expect.poll(() => of('rollout').at(-1)?.data, { timeout: 9_000 }).toEqual({ id: open.id, msgs: 30, state: 'live' });
    // Ten seconds after its last message, without any change.
    await expect.poll(() => of('rollout').at(-1)?.data, { timeout: 40_000 }).toEqual({ id: open.id, msgs: 30, state: 'complete' });
    expect(calm(of('rollout'))).toBe(true);
    await expect.poll(() => alone.of('rollout').at(-1)?.data).toEqual({ id: open.id, msgs: 30, state: 'complete' });
    expect(unopened.of('rollout')).toEqual([]);
  }, 150_000);

  it('sends changed advisories, equal to those of the summary, from another process, once a second', async () => {
    const { of } = await follow(`run=${RUN}`);
    await expect.poll(() => of('advisory').length).toBe(1);
    const rules = (told: Told | undefined) => told?.data.advisories.map(({ rule }: { rule: string }) => rule) ?? [];
    expect(rules(of('advisory')[0])).not.toContain('tool_error');
    // Tool errors, one rollout after the other.
    for (const one of seeded('failing', { steps: 1, tasks: 3 })) {
      await upload(writer, RUN, [{ ...one, failed: true }]);
      await new Promise((resolve) => setTimeout(resolve, 150));
    }
    const summary = async () =>
      (await writer.request('GET', `/v1/runs/${RUN}/summary`)).body.advisories as { rule: string; value: number | null }[];
    await expect
      .poll(
        async () =>
          of('advisory')
            .at(-1)
            ?.data.advisories.find(({ rule }: { rule: string }) => rule === 'tool_error')?.value,
        {
          timeout: 40_000,
        },
      )
      .toBe((await summary()).find(({ rule }) => rule === 'tool_error')!.value);
    expect(rules(of('advisory').at(-1)).toSorted()).toEqual((await summary()).map(({ rule }) => rule).toSorted());
    expect(calm(of('advisory'))).toBe(true);
    expect(of('advisory').every(({ data }) => /^\d+$/.test(data.v))).toBe(true);
  }, 150_000);

  it('does not repeat unchanged content', async () => {
    const { of } = await follow(`run=${RUN}&rollout=${rollouts[0]!.id}`);
    await expect.poll(() => of('rollout').length).toBe(1);
    await upload(writer, RUN, [{ ...seeded('one more')[0]!, failed: false }]);
    await expect.poll(() => of('dirty').length).toBeGreaterThan(0);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(of('rollout')).toHaveLength(1);
  }, 90_000);
});
