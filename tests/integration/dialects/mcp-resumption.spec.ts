import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { defineEnvironment, type RunningServer, serve, tool, z } from '@palestra/environment-kit';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type CuttingProxy, startCuttingProxy } from '../../support/cutting-proxy.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { connectMcp } from './mcp.world.ts';

/** Long calls over MCP: their streams are cut in the middle, and clients want to hear how they come on. */
let server: TestServer;
let upstream: RunningServer;
let proxy: CuttingProxy;
let ran: number[] = [];

const workshop = defineEnvironment({
  name: 'workshop',
  splits: ['train'],
  tasks: () => [{ id: 0 }],
  create: () => ({}),
  prompt: () => [{ type: 'text', text: 'Work.', detail: null }],
  tools: {
    work: tool({
      description: 'Works for so long',
      input: z.object({ ms: z.number() }),
      run: ({ ms }) => {
        ran.push(ms);
        return new Promise<string>((resolve) => setTimeout(() => resolve(`worked ${ms}`), ms).unref());
      },
    }),
  },
});

beforeAll(async () => {
  [server, upstream] = await Promise.all([startServer(), serve([workshop])]);
  proxy = await startCuttingProxy(Number(new URL(server.url).port));
  await register('workshop', { kind: 'remote', url: upstream.url });
});
afterAll(async () => {
  await proxy?.close();
  await server?.close();
  await upstream?.close();
});

async function register(name: string, source: object): Promise<void> {
  const answer = await server.request('POST', '/v1/environments', { body: { name, source } });
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
}
const address = (port: number, name = 'workshop') => `http://127.0.0.1:${port}/mcp/${server.orgName}/${name}`;
const key = () => ({ authorization: `Bearer ${server.apiKey}` });
const callsOf = async (sid: string) => (await server.request('GET', `/v1/sessions/${sid}/calls`)).body.calls as Record<string, unknown>[];
const after = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const text = (result: unknown) => (result as { content: { text: string }[] }).content[0]!.text;

async function connect() {
  ran = [];
  return connectMcp(address(proxy.port), key());
}

/** The stream of the call and the one that listens, at least. */
const cutBoth = () => proxy.cut() >= 2;

/** A stream of a call, as raw as it comes. */
async function post(sid: string, message: object, signal?: AbortSignal) {
  return fetch(address(Number(new URL(server.url).port)), {
    method: 'POST',
    headers: {
      ...key(),
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-session-id': sid,
      'mcp-protocol-version': '2025-11-25',
    },
    body: JSON.stringify(message),
    ...(signal && { signal }),
  });
}
const listen = (sid: string, lastEventId: string) =>
  fetch(address(Number(new URL(server.url).port)), {
    headers: { ...key(), accept: 'text/event-stream', 'mcp-session-id': sid, 'last-event-id': lastEventId },
  });
const work = (ms: number, more: object = {}) => ({
  jsonrpc: '2.0',
  id: 7,
  method: 'tools/call',
  params: { name: 'work', arguments: { ms }, ...more },
});

describe('refusals', () => {
  test('what is no event, and what is another session’s', async () => {
    const [mine, other] = [await connect(), await connect()];
    const garbage = await listen(mine.sid, 'garbage');
    expect([garbage.status, ((await garbage.json()) as any).error.data.code]).toEqual([400, 'invalid_request']);
    const cut = new AbortController();
    const stream = await post(mine.sid, work(2_500, { _meta: { progressToken: 'p' } }), cut.signal);
    const first = new TextDecoder().decode((await stream.body!.getReader().read()).value);
    const id = /^id: (\S+)$/m.exec(first)![1]!;
    cut.abort();
    // The client of that event waits for an answer to request 7, and gets one.
    const foreign = await (await listen(other.sid, id)).text();
    expect(foreign).toContain('"id":7');
    expect(foreign).toContain('"invalid_request"');
    expect(foreign).not.toContain('worked');
    expect(await (await listen(mine.sid, id)).text()).toContain('worked 2500');
    expect(ran).toEqual([2_500]);
  });
});

describe('the official client', () => {
  test('goes on with a stream that was cut in the middle of a call, which runs once', { timeout: 60_000 }, async () => {
    const { client, sid } = await connect();
    const calling = client.callTool({ name: 'work', arguments: { ms: 11_000 } });
    await after(7_000);
    expect(cutBoth()).toBe(true);
    expect(text(await calling)).toBe('worked 11000');
    expect(ran).toEqual([11_000]);
    expect(await callsOf(sid)).toHaveLength(1);
    // What comes next is another call, though it is equal.
    expect(text(await client.callTool({ name: 'work', arguments: { ms: 1 } }))).toBe('worked 1');
    expect(text(await client.callTool({ name: 'work', arguments: { ms: 1 } }))).toBe('worked 1');
    expect(ran).toEqual([11_000, 1, 1]);
  });

  test('gets the result of a call that ended while it was away, after two cuts', { timeout: 60_000 }, async () => {
    const { client, sid } = await connect();
    const calling = client.callTool({ name: 'work', arguments: { ms: 6_000 } }, undefined, { onprogress: () => {} });
    await after(2_000);
    expect(cutBoth()).toBe(true);
    await after(2_500);
    expect(cutBoth()).toBe(true);
    const open = proxy.refuse();
    await after(2_500);
    open();
    expect(text(await calling)).toBe('worked 6000');
    expect(ran).toEqual([6_000]);
    expect(await callsOf(sid)).toHaveLength(1);
  });

  test('waits as long as it hears of progress, also over a cut', { timeout: 60_000 }, async () => {
    const { client } = await connect();
    const heard: { progress: number; message?: string | undefined }[] = [];
    const calling = client.callTool({ name: 'work', arguments: { ms: 18_000 } }, undefined, {
      timeout: 9_000,
      resetTimeoutOnProgress: true,
      onprogress: ({ progress, message }) => heard.push({ progress, message }),
    });
    await after(7_500);
    expect(cutBoth()).toBe(true);
    expect(text(await calling)).toBe('worked 18000');
    expect(heard.length).toBeGreaterThanOrEqual(2);
    expect(heard.every(({ progress }, index) => index === 0 || progress > heard[index - 1]!.progress)).toBe(true);
    expect(heard[0]!.message).toMatch(/^Running for \d+ s\.$/);
    expect(ran).toEqual([18_000]);
  });

  test('that wants no progress hears of none', { timeout: 30_000 }, async () => {
    const { sid } = await connect();
    const answer = await (await post(sid, work(7_000))).text();
    expect(answer).not.toContain('notifications/progress');
    expect(answer).toContain('worked 7000');
  });
});

test('a request that is sent again while it runs is the same request; another id is another one', async () => {
  const { sid } = await connect();
  const [first, again, other] = await Promise.all([
    post(sid, work(1_500)),
    after(400).then(() => post(sid, work(1_500))),
    after(400).then(() => post(sid, { ...work(1_500), id: 8 })),
  ]);
  const meta = async (answer: Response) => ((await answer.json()) as any).result._meta['palestra/task_id'] as string;
  const [one, two, three] = [await meta(first), await meta(again), await meta(other)];
  expect([two === one, three === one]).toEqual([true, false]);
  expect(ran).toEqual([1_500, 1_500]);
  // A client that begins to count anew does not get an old answer.
  expect(await meta(await post(sid, work(1_500)))).not.toBe(one);
});

test('the progress that an MCP server tells is passed on', async () => {
  const child = spawn(process.execPath, [path.join(import.meta.dirname, 'mcp.server.mjs'), 'http'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [port] = (await once(child.stdout, 'data')) as [Buffer];
  await register('marching', { kind: 'mcp', url: `http://127.0.0.1:${Number(String(port))}/mcp` });
  const { client } = await connectMcp(address(proxy.port, 'marching'), key());
  const heard: unknown[] = [];
  const onprogress = (progress: unknown) => heard.push(progress);
  expect(text(await client.callTool({ name: 'march', arguments: { ms: 1_200 } }, undefined, { onprogress }))).toBe('there');
  expect(heard).toEqual([1, 2, 3].map((progress) => ({ progress, total: 3, message: `step ${progress}` })));
});
