import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { defineEnvironment, type RunningServer, serve, tool, z } from '@palestra/environment-kit';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type CuttingProxy, startCuttingProxy } from '../../support/cutting-proxy.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { connectMcp } from './mcp.world.ts';

/**
 * Long calls over MCP with broken streams and progress. A call is long if it runs longer than the service holds its response: here a
 * fraction of a second; the tool runs until the test releases it.
 */
const TIMINGS = { jsonHoldMs: 300, progressHoldMs: 100, beatMs: 100, keepAliveMs: 300, retryMs: 200, listenPingMs: 500 };
let server: TestServer;
let upstream: RunningServer;
let proxy: CuttingProxy;
/** Started and running calls of `work`. */
let ran: number[] = [];
const running: (() => void)[] = [];

const workshop = defineEnvironment({
  name: 'workshop',
  splits: ['train'],
  tasks: () => [{ id: 0 }],
  create: () => ({}),
  prompt: () => [{ type: 'text', text: 'Work.', detail: null }],
  tools: {
    work: tool({
      description: 'Works until it is released; job 0 is done at once',
      input: z.object({ job: z.number() }),
      run: ({ job }) => {
        ran.push(job);
        const result = `worked ${job}`;
        return job === 0 ? result : new Promise<string>((resolve) => running.push(() => resolve(result)));
      },
    }),
  },
});

beforeAll(async () => {
  [server, upstream] = await Promise.all([startServer({ mcp: TIMINGS }), serve([workshop])]);
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
const text = (result: unknown) => (result as { content: { text: string }[] }).content[0]!.text;
const release = () => {
  for (const end of running.splice(0)) end();
};

async function connect() {
  release();
  ran = [];
  return connectMcp(address(proxy.port), key());
}

/** Breaks the stream of the call and the listening stream once both exist. */
async function cutBoth(): Promise<void> {
  await expect.poll(() => proxy.open()).toBeGreaterThanOrEqual(2);
  proxy.cut();
}

/** The raw stream of a call. */
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
const work = (job: number, more: object = {}) => ({
  jsonrpc: '2.0',
  id: 7,
  method: 'tools/call',
  params: { name: 'work', arguments: { job }, ...more },
});
/** Reads a stream until `pattern` matches; continues to its end. */
async function readUntil(answer: Response, pattern: RegExp): Promise<{ rest: () => Promise<string> }> {
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let read = '';
  const more = async () => {
    const { done, value } = await reader.read();
    if (!done) read += value;
    return !done;
  };
  while (!pattern.test(read)) if (!(await more())) throw new Error(`the stream ended: ${read}`);
  return {
    rest: async () => {
      while (await more());
      return read;
    },
  };
}

describe('refusals', () => {
  test('an invalid event id, and one of another session', async () => {
    const [mine, other] = [await connect(), await connect()];
    const garbage = await listen(mine.sid, 'garbage');
    expect([garbage.status, ((await garbage.json()) as any).error.data.code]).toEqual([400, 'invalid_request']);
    const cut = new AbortController();
    const stream = await post(mine.sid, work(1, { _meta: { progressToken: 'p' } }), cut.signal);
    const first = new TextDecoder().decode((await stream.body!.getReader().read()).value);
    const id = /^id: (\S+)$/m.exec(first)![1]!;
    cut.abort();
    // The client of that event gets a response to request 7.
    const foreign = await (await listen(other.sid, id)).text();
    expect(foreign).toContain('"id":7');
    expect(foreign).toContain('"invalid_request"');
    expect(foreign).not.toContain('worked');
    const resumed = await listen(mine.sid, id);
    release();
    expect(await resumed.text()).toContain('worked 1');
    expect(ran).toEqual([1]);
  });
});

describe('the official client', () => {
  test('resumes a stream that broke during a call, which runs once', { timeout: 60_000 }, async () => {
    const { client, sid } = await connect();
    const tokens: string[] = [];
    const onresumptiontoken = (token: string) => tokens.push(token);
    const calling = client.callTool({ name: 'work', arguments: { job: 2 } }, undefined, { onresumptiontoken });
    await expect.poll(() => tokens.length).toBeGreaterThan(0);
    await cutBoth();
    // Both streams are resumed.
    await expect.poll(() => proxy.open()).toBeGreaterThanOrEqual(2);
    release();
    expect(text(await calling)).toBe('worked 2');
    expect(ran).toEqual([2]);
    expect(await callsOf(sid)).toHaveLength(1);
    // The next call is another one, although it is equal.
    expect(text(await client.callTool({ name: 'work', arguments: { job: 0 } }))).toBe('worked 0');
    expect(text(await client.callTool({ name: 'work', arguments: { job: 0 } }))).toBe('worked 0');
    expect(ran).toEqual([2, 0, 0]);
  });

  test('gets the result of a call that ended while it was disconnected', { timeout: 60_000 }, async () => {
    const { client, sid } = await connect();
    let heard = 0;
    const calling = client.callTool({ name: 'work', arguments: { job: 3 } }, undefined, { onprogress: () => (heard += 1) });
    await expect.poll(() => heard).toBeGreaterThan(0);
    await cutBoth();
    const before = heard;
    await expect.poll(() => heard).toBeGreaterThan(before);
    // Both streams are back: neither of them is the next connection.
    await expect.poll(() => proxy.open()).toBeGreaterThanOrEqual(2);
    const { broken } = proxy.breakNext();
    const pass = proxy.hold();
    await cutBoth();
    release();
    await expect.poll(() => callsOf(sid)).toMatchObject([{ state: 'result' }]);
    await broken;
    pass();
    expect(text(await calling)).toBe('worked 3');
    expect(ran).toEqual([3]);
    expect(await callsOf(sid)).toHaveLength(1);
  });

  test('waits while it gets progress, also after a reconnect', { timeout: 60_000 }, async () => {
    const { client } = await connect();
    const heard: { progress: number; message?: string | undefined }[] = [];
    // Longer than a pause of a busy machine.
    const timeout = 8_000;
    const began = performance.now();
    const calling = client.callTool({ name: 'work', arguments: { job: 4 } }, undefined, {
      timeout,
      resetTimeoutOnProgress: true,
      onprogress: ({ progress, message }) => heard.push({ progress, message }),
    });
    await expect.poll(() => heard.length).toBeGreaterThan(2);
    await cutBoth();
    await expect.poll(() => performance.now() - began).toBeGreaterThan(timeout + 500);
    release();
    expect(text(await calling)).toBe('worked 4');
    expect(heard.length).toBeGreaterThanOrEqual(4);
    expect(heard.every(({ progress }, index) => index === 0 || progress > heard[index - 1]!.progress)).toBe(true);
    expect(heard[0]!.message).toMatch(/^Running for \d+ s\.$/);
    expect(ran).toEqual([4]);
  });

  test('that wants no progress gets none, and its stream stays open', { timeout: 30_000 }, async () => {
    const { sid } = await connect();
    const stream = await post(sid, work(5));
    expect(stream.headers.get('content-type')).toBe('text/event-stream');
    // Longer than the interval of progress reports.
    const { rest } = await readUntil(stream, /(: keepalive\n[^]*){2}/);
    release();
    const answer = await rest();
    expect(answer).not.toContain('notifications/progress');
    expect(answer).toContain('worked 5');
  });
});

test('the listening stream keeps the session alive and ends with it', { timeout: 60_000 }, async () => {
  await register('lively', { kind: 'remote', url: upstream.url });
  const sessions = { heartbeat_timeout_s: 5 };
  await server.request('PUT', `/v1/environments/${server.orgName}/lively/details`, { body: { sessions } });
  const [lively, silent] = [await openLively(), await openLively()];
  const headers = { ...key(), accept: 'text/event-stream', 'mcp-session-id': lively };
  const stream = await fetch(address(Number(new URL(server.url).port), 'lively'), { headers });
  expect([stream.status, stream.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
  let ended = false;
  void stream.text().then(() => (ended = true));
  const stateOf = async (sid: string) => (await server.request('GET', `/v1/sessions/${sid}`)).body.state as string;
  await expect.poll(() => stateOf(silent), { timeout: 40_000, interval: 200 }).toBe('expired');
  expect([await stateOf(lively), ended]).toEqual(['ready', false]);
  await server.request('DELETE', `/v1/sessions/${lively}`);
  await expect.poll(() => ended).toBe(true);
});

/** A session without the listening stream of the official client. */
async function openLively(): Promise<string> {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } };
  const answer = await fetch(address(Number(new URL(server.url).port), 'lively'), {
    method: 'POST',
    headers: { ...key(), 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'initialize', params }),
  });
  await answer.text();
  return answer.headers.get('mcp-session-id')!;
}

test('a request repeated while it runs joins its call; another id is another call', async () => {
  const { sid } = await connect();
  // Each response is a stream once the call was held long enough: it has started or joined the running call.
  const first = await post(sid, work(6));
  const [again, other] = await Promise.all([post(sid, work(6)), post(sid, { ...work(6), id: 8 })]);
  for (const answer of [first, again, other]) expect(answer.headers.get('content-type')).toBe('text/event-stream');
  release();
  // Calls of a session run one after another.
  await expect.poll(() => ran.length).toBe(2);
  release();
  const meta = async (answer: Response) => {
    const body = await answer.text();
    return /"palestra\/task_id":"(\w+)"/.exec(body)![1]!;
  };
  const [one, two, three] = [await meta(first), await meta(again), await meta(other)];
  expect([two === one, three === one]).toEqual([true, false]);
  expect(ran).toEqual([6, 6]);
  // A client that restarts its counter does not get an old result.
  const next = post(sid, work(6));
  await expect.poll(() => ran.length).toBe(3);
  release();
  expect(await meta(await next)).not.toBe(one);
});

test('passes progress of an MCP server on', async () => {
  const child = spawn(process.execPath, [path.join(import.meta.dirname, 'mcp.server.mjs'), 'http'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [port] = (await once(child.stdout, 'data')) as [Buffer];
  await register('marching', { kind: 'mcp', url: `http://127.0.0.1:${Number(String(port))}/mcp` });
  const { client } = await connectMcp(address(proxy.port, 'marching'), key());
  const heard: { message?: string | undefined }[] = [];
  const onprogress = (progress: { message?: string | undefined }) => heard.push(progress);
  expect(text(await client.callTool({ name: 'march', arguments: { ms: 400 } }, undefined, { onprogress }))).toBe('there');
  // The service reports that the call still runs.
  const told = heard.filter(({ message }) => message?.startsWith('step '));
  expect(told).toEqual([1, 2, 3].map((progress) => ({ progress, total: 3, message: `step ${progress}` })));
});
