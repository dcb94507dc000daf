import path from 'node:path';
import { createInterface } from 'node:readline';
import { type RunningServer, serve } from '@palestra/environment-kit';
import { afterAll, beforeAll, expect, test, type TestContext } from 'vitest';
import { connectMcp, gallery } from '../integration/protocols/mcp.world.ts';
import { startCuttingProxy } from '../support/cutting-proxy.ts';
import { type Replicas, startReplicas } from '../support/replicas.ts';
import { spawnPython } from './support/fork-server.ts';
import { type McpPython, mcpPython } from './support/mcp.ts';
import { pythonFolder } from './support/python.ts';

/** Streams of long calls that are cut, and taken up again by the official clients, also where the process that served them is gone. */
let replicas: Replicas;
let upstream: RunningServer;

beforeAll(async () => {
  [replicas, upstream] = await Promise.all([startReplicas(2), serve([gallery])]);
  const body = JSON.stringify({ name: 'gallery', source: { kind: 'remote', url: upstream.url } });
  const { url, apiKey } = replicas.client;
  const headers = { 'x-api-key': apiKey, 'content-type': 'application/json' };
  const answer = await fetch(`${url}/v1/environments`, { method: 'POST', headers, body });
  if (!answer.ok) throw new Error(await answer.text());
});
afterAll(async () => {
  await replicas?.stop();
  await upstream?.close();
});

async function proxied(onTestFinished: TestContext['onTestFinished']) {
  const proxy = await startCuttingProxy(replicas.all[0]!.port);
  onTestFinished(() => proxy.close());
  return { proxy, url: `http://127.0.0.1:${proxy.port}/mcp/${replicas.client.namespace}/gallery` };
}

async function callsOf(sid: string): Promise<{ task_id: string }[]> {
  const answer = await fetch(`${replicas.all[1]!.url}/v1/sessions/${sid}/calls`, { headers: { 'x-api-key': replicas.client.apiKey } });
  return ((await answer.json()) as { calls: { task_id: string }[] }).calls;
}

test.concurrent.for<[string, McpPython]>([
  ['1.x', 'PALESTRA_PYTHON_MCP1'],
  ['2.x', 'PALESTRA_PYTHON_MCP2'],
])(
  'the client of mcp %s goes on with a stream that was cut, and hears of progress',
  { timeout: 90_000 },
  async ([_name, python], { expect, onTestFinished }) => {
    const { proxy, url } = await proxied(onTestFinished);
    const script = path.join(pythonFolder, 'mcp_long_call.py');
    const child = spawnPython(mcpPython(python), [script, url, replicas.client.apiKey, '11000'], { cwd: pythonFolder, env: {} });
    onTestFinished(() => void child.kill('SIGKILL'));
    const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
    const next = async () => (await lines.next()).value as string;
    expect(await next()).toBe('calling');
    // The first progress comes five seconds after the call began.
    expect(await next()).toBe('heard');
    expect(proxy.cut()).toBeGreaterThan(0);
    let last = await next();
    while (last === 'heard') last = await next();
    const seen = JSON.parse(last) as { result: any; heard: number[] };
    expect(seen.result).toMatchObject({ content: [{ text: 'awake' }], isError: false });
    expect(seen.heard.length).toBeGreaterThan(0);
    expect(seen.heard.every((progress, index) => index === 0 || progress > seen.heard[index - 1]!)).toBe(true);
  },
);

test('a stream whose process was killed is taken up on another one: the tool ran once', { timeout: 90_000 }, async ({ onTestFinished }) => {
  const { proxy, url } = await proxied(onTestFinished);
  const { client, sid } = await connectMcp(url, { 'x-api-key': replicas.client.apiKey });
  let calling: Promise<unknown>;
  await new Promise<void>((resolve) => {
    calling = client.callTool({ name: 'doze', arguments: { ms: 12_000 } }, undefined, { onprogress: () => resolve() });
  });
  await replicas.all[0]!.kill();
  proxy.aim(replicas.all[1]!.port);
  expect(await calling!).toMatchObject({ content: [{ text: 'awake' }] });
  expect(await callsOf(sid)).toHaveLength(1);
});
