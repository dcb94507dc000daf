import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { PalestraClient, type Session } from '@palestra/client';
import { type RunningServer, serve } from '@palestra/environment-kit';
import { freePort } from '@palestra/hosting';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { gallery } from '../integration/protocols/mcp.world.ts';
import { type Palestra, startPalestra } from '../support/palestra.ts';
import { type McpPython, mcpPython, playMcp, startCounter } from './support/mcp.ts';
import { pythonFolder, run } from './support/python.ts';

/** The official Python package of MCP, 1.x and 2.x: its clients play environments of ours, its servers are environments of ours. */
const PACKAGES: [string, McpPython][] = [
  ['mcp 1.x', 'PALESTRA_PYTHON_MCP1'],
  ['mcp 2.x', 'PALESTRA_PYTHON_MCP2'],
];
const COUNTER = path.join(pythonFolder, 'mcp_counter.py');

let palestra: Palestra;
let upstream: RunningServer;

beforeAll(async () => {
  [palestra, upstream] = await Promise.all([
    startPalestra({ env: { PALESTRA_ALLOW_COMMANDS: '1', PALESTRA_BUNDLED_ENVIRONMENTS: '1' } }),
    serve([gallery]),
  ]);
  await register('gallery', { kind: 'remote', url: upstream.url });
});
afterAll(async () => {
  await palestra?.stop();
  await upstream?.close();
});

async function asked(method: string, url: string, body?: unknown): Promise<any> {
  const answer = await fetch(palestra.url + url, {
    method,
    headers: { 'x-api-key': palestra.apiKey, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${answer.status} ${text}`);
  return JSON.parse(text);
}
const register = (name: string, source: object) => asked('POST', '/v1/environments', { name, source });

async function open(name: string): Promise<Session> {
  const client = new PalestraClient({ url: palestra.url, apiKey: palestra.apiKey });
  return client.session({ environment: `${palestra.namespace}/${name}`, split: 'train', index: 0 });
}
const lastCall = async (sid: string) => (await asked('GET', `/v1/sessions/${sid}/calls`)).calls.at(-1);

describe.each(PACKAGES)('the client of %s', (_name, python) => {
  test('plays an episode to its reward', async () => {
    const url = `${palestra.url}/mcp/${palestra.namespace}/gallery`;
    const seen = await playMcp(python, `${url}?split=test&index=3`, palestra.apiKey);
    expect(seen).toMatchObject({
      protocol: '2025-11-25',
      instructions: expect.stringMatching(/^Picture 3:/),
      task: { 'palestra/split': 'test', 'palestra/index': 3 },
      prompts: ['task'],
      prompt: ['text', 'image', 'text'],
      tools: ['doze', 'look', 'paint', 'raise', 'say'],
      look: { content: [{ text: 'look 1 at 2' }, { type: 'image' }], structuredContent: { looked: 1 }, isError: false },
      unknown: { isError: true, content: [{ text: "'nothing' is not a valid tool" }] },
      misused: { isError: true, _meta: { 'palestra/reason': 'input_validation' } },
      raised: { isError: true, content: [{ text: expect.stringContaining('the lamp fell') }] },
      // More than the mebibyte that 2.x takes as one event of a stream.
      large: 4_000_000,
      last: { _meta: { 'palestra/reward': 1, 'palestra/finished': true }, isError: false },
      after: { isError: true, _meta: { 'palestra/reason': 'episode_finished' } },
    });
    expect(seen.wrong_key).not.toMatch(/^(connected|waited)$/);
    expect(seen.no_environment).not.toMatch(/^(connected|waited)$/);
    // Its client has ended the episode with its connection.
    const session = () => asked('GET', `/v1/sessions/${seen.task['palestra/session_id']}`);
    // The ledger of the last call may be written a moment after the session has ended.
    await expect.poll(session).toMatchObject({ state: 'closed', failure_class: 'ok', total_reward: 1 });
  });
});

/** The block of docs/mcp.md that begins with this comment, as a file. */
function snippetOf(comment: string, edit: (code: string) => string = (code) => code): string {
  const text = readFileSync(path.resolve(import.meta.dirname, '../../docs/mcp.md'), 'utf8');
  const block = new RegExp(`\`\`\`python\\n(# ${comment}\\n[^]*?)\`\`\``).exec(text);
  const folder = mkdtempSync(path.join(tmpdir(), 'palestra-mcp-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, 'snippet.py');
  writeFileSync(file, edit(block![1]!));
  return file;
}

describe('the snippets of docs/mcp.md', () => {
  test.each(PACKAGES)('%s: the client prints the prompt, the tools and the reward', async (name, python) => {
    const env = { OPENREWARD_URL: palestra.url, OPENREWARD_API_KEY: palestra.apiKey };
    const finished = await run(mcpPython(python), [snippetOf(name)], { env });
    expect(finished.code, finished.output).toBe(0);
    expect(finished.stdout).toBe("Task 5: call echo with any text.\n['echo']\nhello 0.1\n");
  });

  test('mcp 2.x: the server gives its reward', async () => {
    const port = await freePort();
    const file = snippetOf('server of mcp 2.x', (code) => code.replace('port=9000', `port=${port}`));
    const child = spawn(mcpPython('PALESTRA_PYTHON_MCP2'), [file], { stdio: 'ignore' });
    onTestFinished(() => void child.kill('SIGKILL'));
    const url = `http://127.0.0.1:${port}/mcp`;
    await expect
      .poll(() =>
        fetch(url).then(
          () => true,
          () => false,
        ),
      )
      .toBe(true);
    await register('quiz', { kind: 'mcp', url });
    const session = await open('quiz');
    expect(await session.prompt()).toMatchObject([{ text: 'What is six times seven?' }]);
    expect(await session.call('submit', { answer: '42' })).toMatchObject({ reward: 1, finished: true, blocks: [{ text: 'submitted' }] });
    await session.close();
  });
});

const servers: [string, string, (name: string) => Promise<object>][] = PACKAGES.flatMap(([label, python]) => {
  const at = (kind: 'streamable-http' | 'sse') => async () => {
    const { url, stop } = await startCounter(python, kind);
    onTestFinished(stop);
    return { kind: 'mcp', url };
  };
  const program = async () => ({ kind: 'mcp', command: [mcpPython(python), COUNTER, 'stdio'] });
  return [
    [label, 'streamable HTTP', at('streamable-http')],
    [label, 'SSE', at('sse')],
    [label, 'standard input and output', program],
  ] as [string, string, () => Promise<object>][];
});

describe.each(servers)('a server of %s over %s', (label, transport, source) => {
  test('is played by an ORS client; its death is no result', async () => {
    const name = `${label} ${transport}`.replaceAll(/[^a-z0-9]+/gi, '-');
    await register(name, await source(name));
    const session = await open(name);
    expect(await session.prompt()).toEqual([{ text: 'Count to three.', detail: null, type: 'text' }]);
    const { tools } = await session.taskTools();
    expect(tools.map((tool) => tool.name)).toEqual(['add', 'dot', 'total', 'fail', 'die']);
    expect(tools[0]).toMatchObject({ description: 'Adds', input_schema: { type: 'object', required: ['by'] } });

    expect(await session.call('add', { by: 1 })).toMatchObject({ blocks: [{ text: '1' }], reward: 0, finished: false });
    expect(await session.call('dot', {})).toMatchObject({ blocks: [{ type: 'image', mimeType: 'image/png' }], reward: null });
    expect(await session.call('total', { a: 2, b: 3 })).toMatchObject({
      blocks: [{ text: '5' }],
      metadata: { structured_content: { result: 5 } },
    });
    expect(await session.call('fail', {})).toMatchObject({
      blocks: [{ text: expect.stringContaining('fail') }],
      reward: null,
      finished: false,
    });
    await expect(session.call('nothing', {})).rejects.toThrow('is not a valid tool');
    expect(await session.call('add', { by: 2 })).toMatchObject({ blocks: [{ text: '3' }], reward: 1, finished: true });
    await session.close();

    const mortal = await open(name);
    await expect(mortal.call('die', {})).rejects.toThrow();
    expect(await lastCall(mortal.sid)).toMatchObject({ tool: 'die', reward: null, failure_class: 'infrastructure', code: 'session_lost' });
  });
});

test('a killed process leaves no program behind', async () => {
  const parent = spawn(process.execPath, ['--input-type=module', '-e', PARENT], {
    stdio: ['ignore', 'pipe', 'inherit'],
    cwd: path.resolve(import.meta.dirname, '../..'),
    env: { ...process.env, SERVER: path.resolve(import.meta.dirname, '../integration/protocols/mcp.server.mjs') },
  });
  const pid = await new Promise<string>((resolve) => parent.stdout.once('data', (data: Buffer) => resolve(String(data).trim())));
  expect(isAlive(pid)).toBe(true);
  parent.kill('SIGKILL');
  await expect.poll(() => isAlive(pid)).toBe(false);
});

/** A zombie is dead: that nobody has buried it yet is its new parent's business. */
function isAlive(pid: string): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

const PARENT = `
  import { McpBackend } from '@palestra/mcp/client';
  const backend = new McpBackend({ command: process.execPath, args: [process.env.SERVER, 'stdio'], allowCommands: true });
  const ref = await backend.create({ sid: 'x', env: null, task: { kind: 'spec', spec: {} }, toolsetName: null, secrets: {} }, AbortSignal.timeout(60_000));
  const { text } = await backend.session(ref).call({ tool: 'pid', input: {}, taskId: 'y' }, AbortSignal.timeout(60_000));
  console.log(JSON.parse(text).output.blocks[0].text);
  setInterval(() => {}, 1_000);
`;
