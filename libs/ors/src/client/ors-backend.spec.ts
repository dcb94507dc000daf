import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { OrsBackend } from './ors-backend.ts';

/** Invalid answers of servers, over real sockets. Valid ones are in tests/conformance. */
type Answer = (response: http.ServerResponse, request: http.IncomingMessage, attempt: number) => void;

let stop: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(stop.map((end) => end()));
  stop = [];
});

const json =
  (body: unknown, status = 200, headers = {}): Answer =>
  (response) =>
    void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));

async function serve(routes: Record<string, Answer>) {
  const seen: { path: string; body: string; headers: http.IncomingHttpHeaders }[] = [];
  const usual: Record<string, Answer> = {
    '/list_environments': json(['a']),
    '/version': json({ version: 'x', build_sha: null }),
    ...routes,
  };
  const server = http.createServer(async (request, response) => {
    let body = '';
    for await (const piece of request) body += piece;
    const path = request.url ?? '';
    seen.push({ path, body, headers: request.headers });
    const answer = usual[path] ?? json({ detail: 'Not Found' }, 404);
    answer(response, request, seen.filter((one) => one.path === path).length);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const backend = new OrsBackend({ url: `${url}/`, deployment: 'acme/a' });
  stop.push(async () => {
    await backend.close();
    server.closeAllConnections();
    server.close();
  });
  return { backend, seen, url, count: (path: string) => seen.filter((one) => one.path === path).length };
}

const soon = () => AbortSignal.timeout(25_000);
const session = (backend: OrsBackend) => backend.session({ sid: 's', env: 'a' });
const call = (backend: OrsBackend) => session(backend).call({ tool: 't', input: {}, taskId: 'x' }, soon());
const sse = (response: http.ServerResponse, text: string) => response.writeHead(200, { 'content-type': 'text/event-stream' }).write(text);
const result = '{"ok":true,"output":{"blocks":[],"metadata":null,"reward":null,"finished":false}}';

describe('OrsBackend', () => {
  test('deletes the episode of an aborted create, also if the delete overtakes the create', async () => {
    const episodes = new Set<string>();
    const sidOf = (request: http.IncomingMessage) => String(request.headers['x-session-id']);
    const { backend, count } = await serve({
      '/create': (response, request, attempt) =>
        void setTimeout(() => {
          episodes.add(sidOf(request));
          json({ sid: sidOf(request) })(response, request, attempt);
        }, 300),
      '/delete': (response, request, attempt) => {
        episodes.delete(sidOf(request));
        json({ sid: sidOf(request) })(response, request, attempt);
      },
    });
    const create = (signal: AbortSignal) =>
      backend.create({ sid: 's', env: null, task: { kind: 'spec', spec: {} }, toolsetName: null, secrets: {}, again: false }, signal);
    const given = new AbortController();
    const opening = create(given.signal);
    await expect.poll(() => count('/create')).toBe(1);
    given.abort(new Error('left'));
    await expect(opening).rejects.toThrow('left');
    await expect.poll(() => count('/delete')).toBe(2);
    expect([...episodes]).toEqual([]);

    // Opened again meanwhile: this episode must not be deleted.
    const again = new AbortController();
    const first = create(again.signal);
    await expect.poll(() => count('/create')).toBe(2);
    again.abort(new Error('left'));
    await expect(first).rejects.toThrow('left');
    await create(soon());
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect([...episodes]).toEqual(['s']);
  });

  test('sends the deployment and no double slash in paths', async () => {
    const { backend, seen } = await serve({ '/ping': json({ status: 'ok' }), '/a/splits': json([]) });
    await backend.splits(null, soon());
    await session(backend).ping(soon());
    expect(seen.every((one) => one.headers['x-deployment'] === 'acme/a' && !one.path.startsWith('//'))).toBe(true);
  });

  test('repeats requests that the server did not run and passes other errors through', async () => {
    const starting = json({ detail: 'Environment still starting.' }, 503, { 'retry-after': '0', 'x-backend-state': 'starting' });
    const { backend, count } = await serve({
      '/a/prompt': (response, request, attempt) => (attempt < 4 ? starting : json([]))(response, request, attempt),
      '/a/call': (response, request, attempt) =>
        attempt < 3
          ? starting(response, request, attempt)
          : void sse(response, `event: task_id\r\ndata: 1\r\n\r\nevent: end\r\ndata: ${result}\r\n\r\n`),
    });
    expect(await session(backend).prompt(soon())).toEqual([]);
    expect(count('/a/prompt')).toBe(4);
    expect(await call(backend)).toMatchObject({ ok: true });
    expect(count('/a/call')).toBe(3);
  });

  test.each([429, 502, 504])('takes %i for a server that starts if it says so', async (status) => {
    const starting = json({}, status, { 'retry-after': '0', 'x-backend-state': 'starting' });
    const { backend, count } = await serve({
      '/a/call': (response, request, attempt) =>
        attempt === 1 ? starting(response, request, attempt) : void sse(response, `event: end\r\ndata: ${result}\r\n\r\n`),
    });
    expect(await call(backend)).toMatchObject({ ok: true });
    expect(count('/a/call')).toBe(2);
  });

  test('sends a call again while a proxy has no server for it', async () => {
    const { backend, count } = await serve({
      '/a/call': (response, _request, attempt) =>
        attempt < 3 ? void response.writeHead(503).end('no healthy upstream') : void sse(response, `event: end\r\ndata: ${result}\r\n\r\n`),
    });
    expect(await call(backend)).toMatchObject({ ok: true });
    expect(count('/a/call')).toBe(3);
  });

  test('does not take a server whose version cannot be read for one without versions', async () => {
    const { backend, seen } = await serve({
      '/version': (response, request, attempt) =>
        json(attempt <= 4 ? {} : { version: 'x', build_sha: null }, attempt <= 4 ? 503 : 200)(response, request, attempt),
      '/create': json({ sid: 's' }),
    });
    const secrets = { KEY: { value: 'value' } };
    const create = () =>
      backend.create({ sid: 's', env: null, task: { kind: 'spec', spec: {} }, toolsetName: 'all', secrets, again: false }, soon());
    await expect(create()).rejects.toMatchObject({ code: 'backend_unreachable' });
    await create();
    expect(JSON.parse(seen.at(-1)!.body)).toMatchObject({ toolset_name: 'all' });
  });

  test('keeps the list of a 422, and the status and text of other errors', async () => {
    const list = [{ type: 'missing', loc: ['body', 'name'], msg: 'Field required' }];
    const { backend } = await serve({ '/create': json({ detail: list }, 422), '/a/prompt': json({ detail: 'I am a teapot' }, 418) });
    const create = backend.create({ sid: 's', env: null, task: { kind: 'spec', spec: {} }, toolsetName: null, secrets: {} }, soon());
    await expect(create).rejects.toMatchObject({ code: 'invalid_body', status: 422, detail: list });
    await expect(session(backend).prompt(soon())).rejects.toMatchObject({ status: 418, detail: 'I am a teapot' });
  });

  test('does not repeat a call whose connection broke before it had an id', async () => {
    const { backend, count } = await serve({ '/a/call': (response) => void response.destroy() });
    await expect(call(backend)).rejects.toMatchObject({ code: 'session_lost', status: 410 });
    expect(count('/a/call')).toBe(1);
  });

  test('resumes a stream that ends without a result by its id and reports the id', async () => {
    const { backend, seen } = await serve({
      '/a/call': (response, _request, attempt) => {
        sse(response, 'event: task_id\r\ndata: 7\r\n\r\n');
        if (attempt === 1) response.end('event: chunk\r\ndata: half\r\n\r\n');
        else response.end(`event: chunk\r\ndata: ${result.slice(0, 5)}\r\n\r\nevent: end\r\ndata: ${result.slice(5)}\r\n\r\n`);
      },
    });
    const ids: string[] = [];
    const running = session(backend).call({ tool: 't', input: {}, taskId: 'x', onUpstreamTaskId: (id) => ids.push(id) }, soon());
    expect(await running).toMatchObject({ ok: true, text: result });
    expect(ids).toEqual(['7', '7']);
    expect(seen.filter((one) => one.path === '/a/call').map((one) => JSON.parse(one.body))).toEqual([
      { name: 't', input: {} },
      { name: 't', input: {}, task_id: '7' },
    ]);
  });

  test.each([429, 502, 503, 504])('resumes a call by its id although a proxy answers %i meanwhile', async (status) => {
    const { backend, seen } = await serve({
      '/a/call': (response, _request, attempt) => {
        if (attempt === 2) return void response.writeHead(status).end('no healthy upstream');
        sse(response, 'event: task_id\r\ndata: 7\r\n\r\n');
        if (attempt === 1) setTimeout(() => response.destroy(), 50);
        else response.end(`event: end\r\ndata: ${result}\r\n\r\n`);
      },
    });
    expect(await call(backend)).toMatchObject({ ok: true });
    const bodies = seen.filter((one) => one.path === '/a/call').map((one) => JSON.parse(one.body) as { task_id?: string });
    expect(bodies.map(({ task_id: id }) => id)).toEqual([undefined, '7', '7']);
  });

  test.each([502, 504])('sends a call again by our id if a proxy answers %i, and not without one', async (status) => {
    const { backend, seen, count } = await serve({
      '/a/call': (response, _request, attempt) =>
        attempt === 1 ? void response.writeHead(status).end() : void sse(response, `event: end\r\ndata: ${result}\r\n\r\n`),
      '/b/call': (response) => void response.writeHead(status).end(),
    });
    const toKit = backend.session({ sid: 's', env: 'a', takesCallIds: true });
    expect(await toKit.call({ tool: 't', input: {}, taskId: 'x' }, soon())).toMatchObject({ ok: true });
    expect(seen.filter(({ path }) => path === '/a/call').map(({ headers }) => headers['x-palestra-call-id'])).toEqual(['x', 'x']);
    const other = backend.session({ sid: 's', env: 'b' }).call({ tool: 't', input: {}, taskId: 'x' }, soon());
    await expect(other).rejects.toMatchObject({ code: 'session_lost', message: expect.stringContaining(`answered ${status}`) as string });
    expect(count('/b/call')).toBe(1);
  });

  test('reports an unknown outcome if the session is unknown when a call is resumed', async () => {
    const gone = json({ detail: 'Active environment not found' }, 404);
    const { backend, count } = await serve({
      '/a/call': (response, request, attempt) => (attempt === 1 ? void response.destroy() : gone(response, request, attempt)),
    });
    const died = backend.session({ sid: 's', env: 'a', takesCallIds: true }).call({ tool: 't', input: {}, taskId: 'x' }, soon());
    await expect(died).rejects.toMatchObject({ code: 'session_lost', message: expect.stringContaining('may or may not have run') });
    expect(count('/a/call')).toBe(2);
    const forgotten = (await serve({ '/a/call': gone })).backend;
    await expect(call(forgotten)).rejects.toMatchObject({ code: 'session_lost', message: expect.stringContaining('did not run') });
  });

  test('reports an unknown outcome if the server no longer has the result', async () => {
    const { backend } = await serve({
      '/a/call': (response) => void response.writeHead(200).end('event: error\r\ndata: unknown task_id\r\n\r\n'),
    });
    const resumed = session(backend).call({ tool: 't', input: {}, taskId: 'x', upstreamTaskId: 'gone' }, soon());
    await expect(resumed).rejects.toMatchObject({ code: 'session_lost' });
  });

  test('follows redirects within the origin only', async () => {
    const { backend } = await serve({
      '/a/splits': json(null, 308, { location: '/b/splits' }),
      '/b/splits': json([{ name: 'train', type: 'train' }]),
      '/a/tools': json(null, 308, { location: 'http://127.0.0.2:1/a/tools' }),
    });
    expect(await backend.splits(null, soon())).toHaveLength(1);
    await expect(backend.tools(null, soon())).rejects.toMatchObject({ code: 'backend_invalid' });
  });

  test('repeats safe requests to an overloaded server', async () => {
    const { backend, count } = await serve({
      '/a/splits': (response, request, attempt) => json(attempt < 3 ? {} : [], attempt < 3 ? 502 : 200)(response, request, attempt),
    });
    expect(await backend.splits(null, soon())).toEqual([]);
    expect(count('/a/splits')).toBe(3);
  });

  test('reports a server that does not speak ORS', async () => {
    const { backend } = await serve({ '/list_environments': (response) => void response.end('<html>') });
    await expect(backend.environments(soon())).rejects.toMatchObject({ code: 'backend_invalid' });
  });

  test('deletes with one request, or two if the server has no /delete', async () => {
    const usual = await serve({ '/delete': json({ sid: 's' }), '/delete_session': json({ sid: 's' }) });
    await session(usual.backend).delete(soon());
    expect([usual.count('/delete'), usual.count('/delete_session')]).toEqual([1, 0]);
    const bare = await serve({ '/delete_session': json({ sid: 's' }) });
    await session(bare.backend).delete(soon());
    expect(bare.count('/delete_session')).toBe(1);
  });

  test("ends a wait on the caller's signal", async () => {
    const { backend } = await serve({ '/a/prompt': () => {} });
    await expect(session(backend).prompt(AbortSignal.timeout(100))).rejects.toMatchObject({ name: 'TimeoutError' });
  });

  test('derives counts and single tasks from a list', async () => {
    const { backend } = await serve({ '/a/tasks': json({ tasks: [{ id: 0 }, { id: 1 }], env_name: 'a' }) });
    expect(await backend.numTasks(null, 'train', soon())).toBe(2);
    expect(await backend.task(null, 'train', -1, soon())).toEqual({ id: 1 });
    await expect(backend.task(null, 'train', 2, soon())).rejects.toMatchObject({ code: 'invalid_index' });
    expect(await backend.taskRange(null, 'train', 1, null, soon())).toEqual([{ id: 1 }]);
  });
});
