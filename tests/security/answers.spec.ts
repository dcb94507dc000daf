import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { createGzip } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import { startScripted } from '../../libs/openenv/src/client/scripted-server.fixture.ts';
import { type Palestra, startPalestra } from '../support/palestra.ts';

/** Finding M7 of the audit: an environment's server cannot fill the memory of the service, nor keep it busy, by what it answers. */

const LONG = 200 * 1024 * 1024;
const PIECE = Buffer.alloc(1024 * 1024, 'x');

let palestra: Palestra;
beforeAll(async () => {
  palestra = await startPalestra();
});
afterAll(() => palestra?.stop());

const memoryMb = () => Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${palestra.pid()}/status`, 'utf8'))![1]) / 1024;

/** Runs an attack; fails when the memory of the service grew by more than 300 MB meanwhile, or another client waited for seconds. */
async function underAttack<T>(attack: () => Promise<T>): Promise<T> {
  const idle = memoryMb();
  let attacking = true;
  const watch = (async () => {
    let [most, slowest] = [0, 0];
    while (attacking) {
      const started = performance.now();
      await (await fetch(`${palestra.url}/health`)).text();
      slowest = Math.max(slowest, performance.now() - started);
      most = Math.max(most, memoryMb());
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return { most, slowest };
  })();
  const outcome = await attack().finally(() => (attacking = false));
  const { most, slowest } = await watch;
  expect(most - idle).toBeLessThan(300);
  expect(slowest).toBeLessThan(5_000);
  return outcome;
}

/** `bytes` of the same piece, as fast as they are read; fewer when the connection ends. */
async function pour(response: http.ServerResponse | NodeJS.WritableStream, bytes: number, piece = PIECE): Promise<void> {
  const closed = new Promise<void>((resolve) => response.once('close', resolve).once('error', () => resolve()));
  let gone = false;
  void closed.then(() => (gone = true));
  for (let sent = 0; sent < bytes && !gone; sent += piece.length) {
    if (response.write(piece)) continue;
    await Promise.race([new Promise((resolve) => response.once('drain', resolve)), closed]);
  }
}

type Answer = (response: http.ServerResponse, body: string) => unknown;

/** A server that answers some paths as a test says, others as a small ORS server does. */
async function startOrs(answers: Record<string, Answer>): Promise<string> {
  const tools = { tools: [{ name: 'look', description: '', input_schema: { type: 'object' } }] };
  const usual: Record<string, unknown> = {
    '/list_environments': ['hostile'],
    '/health': { status: 'ok' },
    '/version': { version: '0.1.167' },
    '/hostile/tools': tools,
    '/hostile/task_tools': tools,
    '/hostile/splits': [{ name: 'train', type: 'train' }],
    '/hostile/num_tasks': { num_tasks: 1 },
    '/hostile/task': { task: {} },
    '/hostile/prompt': [{ text: 'Look.', detail: null, type: 'text' }],
    '/create': { sid: 'x' },
    '/delete': {},
    '/ping': {},
  };
  return startServer((path, response, body) => {
    const answer = answers[path];
    if (answer !== undefined) return void answer(response, body);
    const found = usual[path];
    response
      .writeHead(found === undefined ? 404 : 200, { 'content-type': 'application/json' })
      .end(JSON.stringify(found ?? { detail: 'Not Found' }));
  });
}

async function startServer(handle: (path: string, response: http.ServerResponse, body: string) => void): Promise<string> {
  const server = http.createServer((request, response) => {
    let body = '';
    request.on('data', (piece: Buffer) => (body += piece.toString()));
    request.on('end', () => handle(request.url ?? '', response, body));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

let names = 0;
async function ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const answer = await fetch(palestra.url + path, {
    method,
    headers: { 'x-api-key': palestra.apiKey, 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: answer.status, text: await answer.text() };
}
async function register(kind: string, url: string) {
  const name = `hostile-${(names += 1)}`;
  const { status, text } = await ask('POST', '/v1/environments', { name, source: { kind, url } });
  return { status, text, name: `${palestra.namespace}/${name}` };
}
async function open(name: string) {
  const headers = { 'x-deployment': name, 'x-session-id': crypto.randomUUID() };
  const created = await ask('POST', '/create', { split: 'train', index: 0 }, headers);
  return { created, headers };
}

const dense = (response: http.ServerResponse) => {
  response.writeHead(200, { 'content-type': 'application/json' }).write('[');
  void pour(response, 15 * 1024 * 1024, Buffer.from('{},[],'.repeat(100_000))).then(() => response.end('{}]'));
};
/** Each piece would be an object of a hundred bytes. */
const smallPieces = ({ socket }: http.ServerResponse) => {
  socket!.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
  void pour(socket!, 24 * 1024 * 1024, Buffer.from('1\r\nx\r\n'.repeat(100_000))).then(() => socket!.end('0\r\n\r\n'));
};
const long: [what: string, answer: Answer][] = [
  ['of unknown length', (response) => void pour(response, LONG).then(() => response.end())],
  ['of a length that it says', (response) => void pour(response.writeHead(200, { 'content-length': LONG }), LONG)],
  ['of small pieces', smallPieces],
  ['that is an error', (response) => void pour(response.writeHead(500), LONG).then(() => response.end())],
  ['of very many values', dense],
  ['that is very deep', (response) => response.end('['.repeat(10_000_000))],
];

describe('an ORS server', () => {
  test.each(long)('cannot register with an answer %s', async (_, answer) => {
    for (const path of ['/list_environments', '/hostile/tools']) {
      const url = await startOrs({ [path]: answer });
      const { status, text } = await underAttack(() => register('remote', url));
      expect(status, path).toBeGreaterThanOrEqual(400);
      expect(text.length, path).toBeLessThan(1_000);
    }
  });

  test('cannot cause requests for a million environments', async () => {
    let asked = 0;
    const url = await startOrs({
      '/list_environments': (response) => response.end(JSON.stringify(Array.from({ length: 500_000 }, (_, n) => `e${n}`))),
      '/e1/tools': (response) => response.end(`${(asked += 1)}`),
    });
    expect((await underAttack(() => register('remote', url))).status).toBe(400);
    expect(asked).toBe(0);
  });

  test.each(long)('cannot answer a session with a body %s', async (_, answer) => {
    const { name } = await register('remote', await startOrs({ '/hostile/prompt': answer, '/hostile/task_tools': answer }));
    const { headers } = await open(name);
    for (const route of ['prompt', 'task_tools']) {
      const { status, text } = await underAttack(() => ask('GET', `/hostile/${route}`, undefined, headers));
      expect(status, route).toBeGreaterThanOrEqual(400);
      expect(text.length, route).toBeLessThan(1_000);
    }
  });

  const events: [what: string, piece: string, bytes: number][] = [
    ['one endless line', 'x'.repeat(1024 * 1024), LONG],
    ['many lines', 'data: x\n'.repeat(100_000), LONG],
    ['many chunks', `event: chunk\ndata: ${'x'.repeat(4_000)}\n\n`.repeat(200), LONG],
    ['many small chunks', 'event: chunk\ndata: x\n\n'.repeat(40_000), LONG],
    ['comments', ': x\n'.repeat(200_000), LONG],
  ];
  test.each(events)('cannot answer a call with %s', async (_, piece, bytes) => {
    const stream: Answer = (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('event: task_id\ndata: t1\n\nevent: chunk\ndata: ');
      void pour(response, bytes, Buffer.from(piece)).then(() => response.end());
    };
    const { name } = await register('remote', await startOrs({ '/hostile/call': stream }));
    const { created, headers } = await open(name);
    expect(created.status).toBe(200);
    const { text } = await underAttack(() => ask('POST', '/hostile/call', { name: 'look', input: {} }, headers));
    expect(text).toContain('larger than 32 MiB');
  });

  test('several sessions at once stay within the same memory', async () => {
    const stream: Answer = (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('event: task_id\ndata: t1\n\nevent: chunk\ndata: ');
      void pour(response, LONG).then(() => response.end());
    };
    const { name } = await register('remote', await startOrs({ '/hostile/call': stream }));
    const sessions = await Promise.all([1, 2, 3].map(() => open(name)));
    const answers = await underAttack(() =>
      Promise.all(sessions.map(({ headers }) => ask('POST', '/hostile/call', { name: 'look', input: {} }, headers))),
    );
    for (const { text } of answers) expect(text).toContain('larger than 32 MiB');
  });

  test('may send a long valid answer', async () => {
    const result = JSON.stringify({ ok: true, output: { blocks: [{ type: 'text', text: 'y'.repeat(8_000_000), detail: null }] } });
    const stream: Answer = (response) =>
      response
        .writeHead(200, { 'content-type': 'text/event-stream' })
        .end(
          `event: task_id\ndata: t1\n\nevent: chunk\ndata: ${result.slice(0, 4_000_000)}\n\nevent: end\ndata: ${result.slice(4_000_000)}\n\n`,
        );
    const { name } = await register('remote', await startOrs({ '/hostile/call': stream }));
    const { headers } = await open(name);
    const { text } = await underAttack(() => ask('POST', '/hostile/call', { name: 'look', input: {} }, headers));
    expect(text.length).toBeGreaterThan(8_000_000);
    expect(text).not.toContain('event: error');
  });
});

describe('an OpenEnv server', () => {
  test.each(long)('cannot register with an answer %s', async (_, answer) => {
    for (const path of ['/schema', '/openapi.json', '/metadata']) {
      const server = await startScripted({ generation: 'C', onGet: (asked, response) => asked === path && (answer(response, ''), true) });
      onTestFinished(() => server.stop());
      const { text } = await underAttack(() => register('openenv', server.url));
      expect(text.length, path).toBeLessThan(2_000);
    }
  });

  test('cannot answer a relayed request with a long body', async () => {
    const server = await startScripted({
      generation: 'C',
      onGet: (path, response) =>
        path === '/state' && (long[0]![1](response.writeHead(200, { 'content-type': 'application/json' }), ''), true),
    });
    onTestFinished(() => server.stop());
    const { name } = await register('openenv', server.url);
    const { status, text } = await underAttack(() => ask('GET', `/openenv/${name}/state`));
    expect({ status, text }).toMatchObject({ status: 500, text: expect.stringContaining('answer_too_large') });
  });

  test.each(['one frame', 'many fragments'])('cannot send a long message as %s', async (how) => {
    const server = await startScripted({
      generation: 'C',
      onMessage: (socket) => {
        if (how === 'one frame') socket.send('x'.repeat(LONG));
        else for (let sent = 0; sent < LONG; sent += PIECE.length) socket.send(PIECE.toString(), { fin: false });
        return true;
      },
    });
    onTestFinished(() => server.stop());
    const { name } = await register('openenv', server.url);
    const answer = await underAttack(async () => {
      const socket = new WebSocket(`${palestra.url.replace('http', 'ws')}/openenv/${name}/ws`, {
        headers: { 'x-api-key': palestra.apiKey },
      });
      await once(socket, 'open');
      socket.send('{"type":"reset","data":{}}');
      const [data] = (await once(socket, 'message')) as [Buffer];
      socket.terminate();
      return data.toString();
    });
    expect(answer).toContain('larger than 32 MiB');
  });
});

describe('an MCP server', () => {
  /** Answers one method as a test says, others as a small server does. */
  const startMcp = (hostile: string, answer: (response: http.ServerResponse, id: number) => unknown) =>
    startServer((_path, response, body) => {
      if (body === '') return void response.writeHead(405).end();
      const { id, method, params } = JSON.parse(body) as { id?: number; method: string; params?: { protocolVersion?: string } };
      if (id === undefined) return void response.writeHead(202).end();
      if (method === hostile) return void answer(response, id);
      const results: Record<string, object> = {
        initialize: { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'small', version: '1' } },
        'tools/list': { tools: [{ name: 'look', inputSchema: { type: 'object' } }] },
      };
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] ?? {} }));
    });
  const json = { 'content-type': 'application/json' };
  const stream = { 'content-type': 'text/event-stream' };
  const attacks: [what: string, answer: (response: http.ServerResponse, id: number) => unknown][] = [
    ['long JSON', (response) => void pour(response.writeHead(200, json), LONG)],
    ['a long event', (response) => (response.writeHead(200, stream).write('data: '), void pour(response, LONG))],
    ['an event of many lines', (response) => void pour(response.writeHead(200, stream), LONG, Buffer.from('data: x\n'.repeat(100_000)))],
    [
      'compressed JSON',
      (response) => {
        const zipped = createGzip();
        zipped.pipe(response.writeHead(200, { ...json, 'content-encoding': 'gzip' }));
        void pour(zipped, 10 * LONG);
      },
    ],
    ['JSON of very many values', dense],
    ['an error', (response) => void pour(response.writeHead(500, stream), LONG)],
  ];
  test.each(attacks)('cannot answer with %s', async (_, answer) => {
    for (const method of ['initialize', 'tools/list']) {
      const { status, text } = await underAttack(async () => register('mcp', await startMcp(method, answer)));
      expect(status, method).toBeGreaterThanOrEqual(400);
      expect(text.length, method).toBeLessThan(1_000);
    }
    const { name } = await register('mcp', await startMcp('tools/call', answer));
    const { headers } = await open(name);
    const { text } = await underAttack(() => ask('POST', '/mcp/call', { name: 'look', input: {} }, headers));
    expect(text).toContain('event: error');
    expect(text.length).toBeLessThan(1_000);
  });

  test('cannot list tools without end', async () => {
    const tool = { name: 'look', description: 'x'.repeat(1_000_000), inputSchema: { type: 'object' } };
    const url = await startMcp('tools/list', (response, id) =>
      response.writeHead(200, json).end(JSON.stringify({ jsonrpc: '2.0', id, result: { tools: [tool], nextCursor: 'more' } })),
    );
    expect((await underAttack(() => register('mcp', url))).text).toContain('answer_too_large');
  });
});
