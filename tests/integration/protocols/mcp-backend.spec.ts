import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { McpBackend, type McpBackendOptions } from '@palestra/mcp/client';
import { type BackendCreate, ToolFailedError } from '@palestra/session';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';

/** MCP servers as backends: real servers in their own processes. */
const SERVER = path.join(import.meta.dirname, 'mcp.server.mjs');
const soon = () => AbortSignal.timeout(20_000);

async function startServer(kind: 'http' | 'stateless' | 'sse'): Promise<{ url: string; child: ChildProcess }> {
  const child = spawn(process.execPath, [SERVER, kind], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [port] = (await once(child.stdout!, 'data')) as [Buffer];
  return { url: `http://127.0.0.1:${String(port).trim()}/mcp`, child };
}

const backends: McpBackend[] = [];
afterEach(async () => {
  await Promise.all(backends.splice(0).map((backend) => backend.close()));
});
function backendOf(options: McpBackendOptions): McpBackend {
  const backend = new McpBackend(options);
  backends.push(backend);
  return backend;
}
const program = (): McpBackendOptions => ({ command: process.execPath, args: [SERVER, 'stdio'], allowCommands: true });

async function open(backend: McpBackend, task: BackendCreate['task'] = { kind: 'index', split: 'train', index: 0 }) {
  const ref = await backend.create({ sid: randomUUID(), env: null, task, toolsetName: null, secrets: {} }, soon());
  const session = backend.session(JSON.parse(JSON.stringify(ref)));
  const call = (tool: string, input: Record<string, unknown> = {}, signal = soon()) =>
    session.call({ tool, input: input as never, taskId: randomUUID() }, signal);
  const say = async (tool: string, input?: Record<string, unknown>) => {
    const result = await call(tool, input);
    const { output } = JSON.parse(result.text);
    return output.blocks[0].text as string;
  };
  return { session, call, say };
}
/** A zombie counts as dead. */
const isAlive = (pid: number): boolean => {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
};

const kinds: [string, () => Promise<McpBackendOptions>][] = [
  ['streamable HTTP', async () => ({ url: (await startServer('http')).url })],
  ['HTTP with SSE', async () => ({ url: (await startServer('sse')).url })],
  ['standard input and output', async () => program()],
];

describe.each(kinds)('over %s', (_name, options) => {
  test('has tools, prompt, rewards and errors of an ORS environment', async () => {
    const backend = backendOf(await options());
    expect(await backend.splits()).toEqual([{ name: 'train', type: 'train' }]);
    expect(await backend.task(null, 'train', 0)).toEqual({});
    expect((await backend.tools(null, soon())).tools[0]).toMatchObject({
      name: 'add',
      description: 'Adds',
      input_schema: { type: 'object', properties: { by: { type: 'number' } } },
    });
    const { session, call } = await open(backend);
    expect(await session.prompt(soon())).toEqual([{ text: 'Count to three.', detail: null, type: 'text' }]);
    expect((await session.taskTools(soon())).tools.map(({ name }) => name)).toContain('fail');

    expect(await call('add', { by: 1 })).toMatchObject({ ok: true, reward: 0, finished: false });
    const last = await call('add', { by: 2 });
    expect(last).toMatchObject({ ok: true, reason: null, reward: 1, finished: true });
    expect(JSON.parse(last.text)).toEqual({
      ok: true,
      output: { blocks: [{ text: '3', detail: null, type: 'text' }], metadata: null, reward: 1, finished: true },
    });
    const plain = await call('plain');
    expect(plain).toMatchObject({ reward: null, finished: false });
    expect(JSON.parse(plain.text).output).toEqual({
      blocks: [
        { text: 'plain', detail: null, type: 'text' },
        { data: 'iVBORw0KGgo=', mimeType: 'image/png', detail: null, type: 'image' },
        { text: '[audio, audio/wav: not shown]', detail: null, type: 'text' },
        { text: 'inside', detail: null, type: 'text' },
      ],
      metadata: { structured_content: { a: 1 } },
      reward: null,
      finished: false,
    });
    const failed = await call('fail');
    expect(failed).toMatchObject({ ok: true, reward: null });
    expect(failed.text).toContain('no luck');
    expect(await call('nothing')).toMatchObject({
      ok: false,
      reason: 'not_found',
      text: expect.stringContaining("'nothing' is not a valid tool"),
    });
    await session.ping(soon());
  });

  test('gives each episode its own state', async () => {
    const backend = backendOf(await options());
    const [one, other] = await Promise.all([open(backend), open(backend)]);
    await one.call('add', { by: 5 });
    expect(await other.say('add', { by: 1 })).toBe('1');
    await one.session.delete(soon());
    await one.session.delete(soon());
    await expect(one.call('add', { by: 1 })).rejects.toMatchObject({ code: 'session_lost' });
    expect(await other.say('add', { by: 1 })).toBe('2');
  });

  test('loses the session of a server that dies during a call', async () => {
    const backend = backendOf(await options());
    const { call } = await open(backend);
    const started = Date.now();
    await expect(call('die', { after_ms: 300 })).rejects.toMatchObject({ code: 'session_lost' });
    expect(Date.now() - started).toBeLessThan(15_000);
    await expect(call('add', { by: 1 })).rejects.toMatchObject({ code: 'session_lost' });
  });

  test('ends the session of an aborted call', async () => {
    const backend = backendOf(await options());
    const { call } = await open(backend);
    await expect(call('doze', { ms: 60_000 }, AbortSignal.timeout(300))).rejects.toThrow();
    await expect(call('add', { by: 1 })).rejects.toMatchObject({ code: 'session_lost' });
  });
});

describe('tasks', () => {
  test('uses the question of a task as the prompt', async () => {
    const backend = backendOf(program());
    for (const [spec, prompt] of [
      [{ question: 'How many?' }, 'How many?'],
      [{ prompt: 'Go on.', question: 'How many?' }, 'Go on.'],
      [{ id: 4 }, 'Count to three.'],
    ] as const) {
      const { session } = await open(backend, { kind: 'spec', spec });
      expect(await session.prompt(soon())).toEqual([{ text: prompt, detail: null, type: 'text' }]);
      await session.delete(soon());
    }
  });

  test('reports what does not exist', async () => {
    const backend = backendOf(program());
    await expect(open(backend, { kind: 'index', split: 'test', index: 0 })).rejects.toMatchObject({ code: 'invalid_split' });
    await expect(open(backend, { kind: 'index', split: 'train', index: 1 })).rejects.toMatchObject({ code: 'invalid_index' });
    await expect(backend.numTasks(null, 'test')).rejects.toMatchObject({ code: 'invalid_split' });
    const again = { sid: randomUUID(), env: null, task: { kind: 'spec', spec: {} }, toolsetName: 'x', secrets: {} } as const;
    await expect(backend.create(again, soon())).rejects.toMatchObject({ code: 'unknown_toolset' });
    await expect(backend.session({ sid: 'another process’s' }).prompt(soon())).rejects.toMatchObject({ code: 'session_lost' });
  });
});

describe('a program', () => {
  test('is started only if the operator allows it', async () => {
    const backend = backendOf({ command: process.execPath, args: [SERVER, 'stdio'] });
    await expect(backend.tools(null, soon())).rejects.toMatchObject({ code: 'commands_not_allowed' });
    await expect(open(backend)).rejects.toMatchObject({ code: 'commands_not_allowed' });
  });

  test('gets none of our environment variables', async () => {
    process.env['PALESTRA_SECRET_KEY'] = 'not to be seen';
    const { say } = await open(backendOf(program()));
    const seen = JSON.parse(await say('environment')) as Record<string, string>;
    delete process.env['PALESTRA_SECRET_KEY'];
    expect(JSON.stringify(seen)).not.toContain('not to be seen');
    expect(Object.keys(seen).filter((name) => /PALESTRA|DATABASE|S3_|VITEST|NODE_/.test(name))).toEqual([]);
    expect(seen['cwd']).not.toBe(process.cwd());
  });

  test.each(['delete', 'close'] as const)('is gone with all that it started after %s', async (how) => {
    const backend = backendOf(program());
    const { session, say } = await open(backend);
    const [pid, child] = [Number(await say('pid')), Number(await say('child'))];
    expect([isAlive(pid), isAlive(child)]).toEqual([true, true]);
    await (how === 'delete' ? session.delete(soon()) : backend.close());
    await expect.poll(() => [isAlive(pid), isAlive(child)]).toEqual([false, false]);
  });

  test('reports why it ended', async () => {
    const missing = backendOf({ command: '/nonexistent/program', args: [], allowCommands: true });
    await expect(open(missing)).rejects.toMatchObject({ code: 'backend_unreachable', message: expect.stringContaining('ENOENT') });
    const brief = backendOf({
      command: process.execPath,
      args: ['-e', 'console.error("no licence"); process.exit(3)'],
      allowCommands: true,
    });
    await expect(open(brief)).rejects.toMatchObject({ code: 'backend_unreachable', message: expect.stringContaining('no licence') });
    const { call } = await open(backendOf(program()));
    await expect(call('die')).rejects.toMatchObject({ message: expect.stringContaining('I was told to die.') });
  });

  test('that never answers is ended at its deadline', async () => {
    const backend = backendOf({ command: 'sleep', args: ['600'], allowCommands: true });
    const create = { sid: randomUUID(), env: null, task: { kind: 'spec', spec: {} }, toolsetName: null, secrets: {} } as const;
    await expect(backend.create(create, AbortSignal.timeout(300))).rejects.toThrow();
  });
});

describe('a server at a URL', () => {
  test('that does not exist or does not speak MCP', async () => {
    await expect(open(backendOf({ url: 'http://127.0.0.1:1/mcp' }))).rejects.toMatchObject({ code: 'backend_unreachable' });
    const { url } = await startServer('http');
    const { session, call } = await open(backendOf({ url }));
    await session.delete(soon());
    await expect(call('add')).rejects.toMatchObject({ code: 'session_lost' });
  });

  test('that has no sessions can be played', async () => {
    const { url } = await startServer('stateless');
    const backend = backendOf({ url });
    expect((await backend.tools(null, soon())).tools).toHaveLength(9);
    const { session, say } = await open(backend);
    expect(await session.prompt(soon())).toEqual([{ text: 'Count to three.', detail: null, type: 'text' }]);
    expect(await say('add', { by: 2 })).toBe('2');
    expect(await say('doze', { ms: 500 })).toBe('awake');
    await session.delete(soon());
  });

  test('that was restarted does not know its sessions', async () => {
    const { url, child } = await startServer('http');
    const { call } = await open(backendOf({ url }));
    child.kill('SIGKILL');
    await once(child, 'exit');
    await expect(call('add', { by: 1 })).rejects.toMatchObject({ code: 'session_lost' });
  });
});

/** A server behind a proxy that answers calls of tools by itself. */
async function startProxied(status: number): Promise<string> {
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (piece: Buffer) => (body += String(piece)));
    request.on('end', () => {
      const { id, method } = JSON.parse(body || '{}') as { id?: number; method?: string };
      if (method === 'tools/call') return response.writeHead(status, { 'content-type': 'text/html' }).end('<html>proxy</html>');
      if (id === undefined) return response.writeHead(request.method === 'GET' ? 405 : 202).end();
      const info = { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'raw', version: '1' } };
      const result = method === 'initialize' ? info : { tools: [{ name: 'slow', inputSchema: { type: 'object' } }] };
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }));
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => server.close().closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}

test('a proxy that gave a call up leaves its outcome unknown; one without a server ran nothing', async () => {
  for (const status of [502, 504]) {
    const { session, call } = await open(backendOf({ url: await startProxied(status) }));
    await expect(call('slow')).rejects.toMatchObject({ code: 'session_lost', message: expect.stringContaining(`HTTP ${status}`) });
    await expect(session.taskTools(soon())).rejects.toMatchObject({ code: 'session_lost' });
  }
  const { session, call } = await open(backendOf({ url: await startProxied(503) }));
  await expect(call('slow')).rejects.toMatchObject({ code: 'backend_unreachable' });
  expect((await session.taskTools(soon())).tools).toHaveLength(1);
});

test('a JSON-RPC error of a known tool is a tool failure', async () => {
  const script = `
    process.stdin.on('data', (data) => {
      for (const line of String(data).trim().split('\\n')) {
        const { id, method } = JSON.parse(line);
        if (id === undefined) continue;
        const info = { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'raw', version: '1' } };
        const tools = { tools: [{ name: 'odd', inputSchema: { type: 'object' } }] };
        const answer = method === 'initialize' ? { result: info } : method === 'tools/list' ? { result: tools }
          : { error: { code: String(data).includes('wrong') ? -32602 : -32000, message: 'the belt slipped' } };
        console.log('not JSON at all');
        console.log(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
      }
    });`;
  const { session, call } = await open(backendOf({ command: process.execPath, args: ['-e', script], allowCommands: true }));
  expect(await session.prompt(soon())).toEqual([{ text: 'raw', detail: null, type: 'text' }]);
  await expect(call('odd')).rejects.toThrow(new ToolFailedError('the belt slipped'));
  expect(await call('odd', { wrong: true })).toMatchObject({ ok: false, reason: 'input_validation' });
  expect(await call('other')).toMatchObject({ ok: false, reason: 'not_found' });
});
