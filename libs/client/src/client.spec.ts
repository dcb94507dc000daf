import type { ServerResponse } from 'node:http';
import { describe, expect, onTestFinished, test } from 'vitest';
import { PalestraClient } from './client.ts';
import { playGroup } from './play-group.ts';
import { type Handler, json, startTestServer } from './test-server.fixture.ts';

async function clientOf(handle: Handler): Promise<PalestraClient> {
  const client = new PalestraClient({ url: await startTestServer(handle), uploads: { maxAgeMs: 5 } });
  onTestFinished(async () => void (await client.close()));
  return client;
}

const RESULT = JSON.stringify({ ok: true, output: { blocks: [], metadata: null, reward: 1, finished: true } });
const task = { environment: 'a/b', split: 'train', index: 0, reserve: false, pingIntervalMs: 0 };

describe('a session', () => {
  test('resumes an interrupted call with its task id', async () => {
    const bodies: unknown[] = [];
    const keys = new Set<unknown>();
    const client = await clientOf((path, body, response, request) => {
      if (path !== '/call') return void json(response, {});
      bodies.push(body);
      keys.add(request.headers['idempotency-key']);
      response
        .writeHead(200, { 'content-type': 'text/event-stream' })
        .write('event: task_id\r\ndata: t1\r\n\r\nevent: chunk\r\ndata: {"ok"\r\n\r\n');
      if (bodies.length === 1) setTimeout(() => response.destroy(), 20);
      else response.end(`event: end\r\ndata: ${RESULT.slice(5)}\r\n\r\n`);
    });
    const session = await client.session(task);
    expect(await session.call('x', { a: 1 })).toMatchObject({ reward: 1, finished: true });
    expect(bodies).toEqual([
      { name: 'x', input: { a: 1 } },
      { name: 'x', input: { a: 1 }, task_id: 't1' },
    ]);
    // One key for both requests, another one for another call.
    expect(keys.size).toBe(1);
    await session.call('x', { a: 1 });
    expect(keys.size).toBe(2);
  });

  test('reports its place in the queue while it waits for a slot', async () => {
    const headers: unknown[] = [];
    const client = await clientOf((path, _body, response, request) => {
      if (path !== '/create_session') return void json(response, {});
      headers.push(request.headers['x-palestra-queue']);
      const queue = (position: number) => `event: queue\r\ndata: {"position":${position},"waiting":2,"estimated_wait_s":null}\r\n\r\n`;
      response.end(`event: task_id\r\ndata: s1\r\n\r\n${queue(2)}: ping\r\n\r\n${queue(1)}event: end\r\ndata: \r\n\r\n`);
    });
    const positions: number[] = [];
    const session = await client.session({ ...task, reserve: true, onQueue: ({ position }) => positions.push(position) });
    expect([session.sid, positions, headers]).toEqual(['s1', [2, 1], ['1']]);
  });

  test('follows the redirect of another server to its first environment, but not to another origin', async () => {
    const seen: unknown[] = [];
    const elsewhere = await startTestServer((path, _body, response) => json(response, seen.push(path)));
    const client = await clientOf((path, body, response, request) => {
      if (path === '/create') return void json(response, {});
      if (path === '/messages') return void response.writeHead(308, { location: `${elsewhere}/messages` }).end();
      if (!path.startsWith('/first/')) return void response.writeHead(308, { location: `/first${path}` }).end('moved');
      seen.push([path, body, request.headers['x-session-id']]);
      if (path === '/first/call') response.end(`event: end\r\ndata: ${RESULT}\r\n\r\n`);
      else json(response, []);
    });
    const session = await client.session(task);
    expect(await session.prompt()).toEqual([]);
    expect(await session.call('x', { a: 1 })).toMatchObject({ reward: 1 });
    await expect(session.messages()).rejects.toMatchObject({ status: 308 });
    expect(seen).toEqual([
      ['/first/prompt', {}, session.sid],
      ['/first/call', { name: 'x', input: { a: 1 } }, session.sid],
    ]);
  });

  test.each([
    ['cut', (response: ServerResponse) => void response.destroy()],
    ['answered by a proxy', (response: ServerResponse) => void response.writeHead(502).end('<h1>Bad Gateway</h1>')],
  ])('treats "already exists" on the repeat of a /create that was %s as success', async (_how, lose) => {
    let creates = 0;
    const client = await clientOf((path, _body, response) => {
      if (path !== '/create') return void json(response, {});
      creates += 1;
      if (creates === 1) lose(response);
      else json(response, { detail: 'Session already exists' }, 400);
    });
    await expect(client.session(task)).resolves.toBeDefined();
    expect(creates).toBe(2);
  });
});

describe('sessions', () => {
  test('resumes an interrupted event stream after the last event', async () => {
    const lastEventIds: (string | undefined)[] = [];
    const client = await clientOf((_path, _body, response, request) => {
      lastEventIds.push(request.headers['last-event-id'] as string | undefined);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      if (lastEventIds.length === 1) {
        response.write(
          'id: 1.0\r\nevent: session\r\ndata: {"sid":"s"}\r\n\r\nid: 1.7\r\nevent: call\r\ndata: {"seq":7}\r\n\r\nid: 1.8\r\nev',
        );
        setTimeout(() => response.destroy(), 20);
      } else response.end('id: 2.8\r\nevent: call\r\ndata: {"seq":8}\r\n\r\nid: 2.8\r\nevent: end\r\ndata: {"sid":"s"}\r\n\r\n');
    });
    const events: unknown[] = [];
    for await (const event of client.sessions.events('s')) events.push(event.type === 'call' ? event.call.seq : event.type);
    expect(events).toEqual(['session', 7, 8, 'end']);
    expect(lastEventIds).toEqual([undefined, '1.7']);
  });

  test('opens a session once, also if the response is lost', async () => {
    const bodies: Record<string, unknown>[] = [];
    const client = await clientOf((path, body, response, request) => {
      if (request.method === 'GET') return void json(response, { sid: path.split('/').at(-1), state: 'ready' });
      bodies.push(body);
      if (bodies.length === 1) response.destroy();
      else json(response, { code: 'session_exists', detail: 'Session already exists' }, 400);
    });
    const view = await client.sessions.open({ environment: 'a/b', split: 'train', index: 0 });
    expect(bodies[1]).toEqual(bodies[0]);
    expect(view).toEqual({ sid: bodies[0]!['sid'], state: 'ready' });
  });

  test('reads all pages of a list', async () => {
    const client = await clientOf((path, _body, response) => {
      const { searchParams } = new URL(path, 'http://x');
      if (path.includes('/calls')) {
        const after = Number(searchParams.get('after'));
        return void json(response, { calls: [{ seq: after + 1 }, { seq: after + 2 }], next_after: after < 4 ? after + 2 : null });
      }
      const cursor = searchParams.get('cursor');
      json(response, {
        sessions: [{ sid: cursor ?? searchParams.get('state') }],
        next_cursor: cursor === 'b' ? null : cursor === null ? 'a' : 'b',
      });
    });
    const sids: string[] = [];
    for await (const { sid } of client.sessions.list({ states: ['live', 'lost'] })) sids.push(sid);
    expect(sids).toEqual(['live,lost', 'a', 'b']);
    const seqs: number[] = [];
    for await (const { seq } of client.sessions.calls('s')) seqs.push(seq);
    expect(seqs).toEqual([1, 2, 3, 4, 5, 6]);
  });
});

describe('a download', () => {
  test('of more than a socket buffers is complete, and waits for its reader', async () => {
    const large = Buffer.alloc(5_000_000, 'x');
    const client = await clientOf((_path, _body, response) => void response.end(large));
    let received = 0;
    for await (const bytes of await client.rolloutExports.download('e', 'f')) {
      received += bytes.length;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(received).toBe(large.length);
  });

  const file = Array.from({ length: 300 }, (_, index) => String.fromCharCode(97 + (index % 26))).join('');
  const read = async (client: PalestraClient) => {
    let text = '';
    for await (const bytes of await client.rolloutExports.download('e', 'f')) text += Buffer.from(bytes).toString();
    return text;
  };

  test('continues at the first missing byte', async () => {
    const ranges: (string | undefined)[] = [];
    const client = await clientOf((_path, _body, response, { headers: { range } }) => {
      ranges.push(range);
      const start = range === undefined ? 0 : Number(/\d+/.exec(range)![0]);
      response.writeHead(range === undefined ? 200 : 206, { 'content-length': file.length - start });
      if (ranges.length > 2) return void response.end(file.slice(start));
      response.write(file.slice(start, start + 100), () => setTimeout(() => response.destroy(), 20));
    });
    expect(await read(client)).toBe(file);
    expect(ranges).toEqual([undefined, 'bytes=100-', 'bytes=200-']);
  });

  test('fails where the server cannot continue, and when no byte comes any more', async () => {
    const whole = await clientOf((_path, _body, response) => {
      response.writeHead(200, { 'content-length': file.length }).write(file.slice(0, 100), () => setTimeout(() => response.destroy(), 20));
    });
    await expect(read(whole)).rejects.toMatchObject({ retryable: false, message: expect.stringContaining('after 100 bytes') });
    let requests = 0;
    const empty = await clientOf((_path, _body, response, { headers: { range } }) => {
      requests += 1;
      response.writeHead(range === undefined ? 200 : 206, { 'content-length': 200 });
      response.write(range === undefined ? file.slice(0, 100) : '', () => setTimeout(() => response.destroy(), 5));
      response.flushHeaders();
    });
    await expect(read(empty)).rejects.toMatchObject({ name: 'ConnectionError' });
    expect(requests).toBeLessThan(20);
  });
});

test('uploads are retried after 503 until all events are stored', async () => {
  let requests = 0;
  const client = await clientOf((_path, _body, response) => {
    requests += 1;
    json(response, {}, requests === 1 ? 503 : 200);
  });
  const rollout = await client.rollouts.start({ runName: 'r' });
  for (let index = 0; index < 10; index += 1) await rollout.log({ type: 'user_message', content: 'x' });
  expect(await client.rollouts.flush()).toEqual({ stored: 11, unsent: 0, error: null });
});

test('many requests at once share a signal without a warning of Node.js', async () => {
  const warnings: Error[] = [];
  const warn = (warning: Error) => warnings.push(warning);
  process.on('warning', warn);
  onTestFinished(() => void process.off('warning', warn));
  const { signal } = new AbortController();
  const client = await clientOf((path, _body, response) => {
    if (path !== '/call') return void json(response, {});
    setTimeout(() => response.writeHead(200, { 'content-type': 'text/event-stream' }).end(`event: end\r\ndata: ${RESULT}\r\n\r\n`), 50);
  });
  const sessions = await Promise.all(Array.from({ length: 20 }, () => client.session({ ...task, signal })));
  await Promise.all(sessions.map((session) => session.call('x', {})));
  expect(warnings).toEqual([]);
});

test('an episode that fails by the infrastructure is unscored and has no reward of 0', async () => {
  const events: Record<string, unknown>[] = [];
  const client = await clientOf((path, body, response) => {
    if (path === '/v1/rollouts') events.push(...(body['events'] as Record<string, unknown>[]));
    if (path === '/create_session') response.end('event: task_id\r\ndata: s\r\n\r\nevent: end\r\ndata: \r\n\r\n');
    else if (path === '/prompt') json(response, []);
    else if (path === '/call') response.end('event: task_id\r\ndata: t\r\n\r\nevent: error\r\ndata: boom\r\n\r\n');
    else json(response, { tools: [] });
  });
  const policy = () => ({ toolCall: { name: 'x', arguments: {} } });
  const group = await playGroup(client, {
    environment: 'a/b@2',
    split: 'train',
    index: 0,
    samples: 2,
    policy,
    maxTurns: 3,
    record: { runName: 'r' },
  });
  expect(group).toMatchObject({ meanReward: null, unscored: 2, samples: [{ scored: false }, { scored: false }] });
  await client.rollouts.flush();
  expect(events).toContainEqual(
    expect.objectContaining({ eventType: 'rollout', environment: 'a/b', metadata: { repetition_id: 1, session_id: 's' } }),
  );
  const ended = events.filter(({ rollout_info: info }) => (info as { stop_reason?: string } | undefined)?.stop_reason === 'env_error');
  expect(ended).toHaveLength(2);
  expect(events.filter(({ type }) => type === 'tool_result')).toMatchObject([{ content: 'Error: boom' }, { content: 'Error: boom' }]);
  expect(events.every(({ reward }) => reward === undefined)).toBe(true);
});
