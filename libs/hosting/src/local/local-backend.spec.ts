import { defineEnvironment, LinkClient, type RunningServer, serve, tool, z } from '@palestra/environment-kit';
import { type JsonObject, PalestraError, parseJson, stringifyJson } from '@palestra/protocol';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { LocalBackend } from './local-backend.ts';

/** Open episodes by SID. */
const standing = new Set<string>();
/** SIDs of the episodes that were torn down. */
const ended: string[] = [];
/** Slow operations that have started: a constructor, a call of `wait`. */
let begun: ('create' | 'wait')[] = [];
const environment = defineEnvironment<{ id?: number; setup?: number; create?: number }, { sid: string }>({
  name: 'Local',
  splits: ['train'],
  numTasks: () => 3,
  task: (_, id) => ({ id }),
  create: async ({ sid, task }) => {
    if (task.create) {
      begun.push('create');
      await sleep(task.create);
    }
    standing.add(sid);
    return { sid };
  },
  teardown({ sid }) {
    standing.delete(sid);
    ended.push(sid);
  },
  setup: ({ task, signal }) => (task.setup ? sleep(task.setup, undefined, { signal }) : undefined),
  prompt: () => 'héllo\n"quoted"',
  tools: {
    say: tool({ description: 'Says it', input: z.object({ text: z.string() }), run: ({ text }) => ({ content: text, reward: 1 }) }),
    wait: tool({ description: 'Waits', run: () => (begun.push('wait'), sleep(60_000, '')) }),
    change: tool({
      description: 'Changes what it was given',
      input: z.object({ value: z.any() }),
      run({ value }) {
        const { float, list } = value as { float: unknown; list: number[] };
        list.push(2);
        return { content: 'changed', metadata: { type: typeof float } };
      },
    }),
    boom: tool({
      description: 'Crashes',
      run() {
        throw new Error('kaboom');
      },
    }),
  },
});

let folder: string;
let server: RunningServer;
let backend: LocalBackend;
const never = new AbortController().signal;

const openLink = async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'palestra-link-'));
  server = await serve([environment], { link: path.join(folder, 'link.sock') });
  backend = new LocalBackend(new LinkClient(server.link!));
};
const closeLink = async () => {
  await server.close();
  await rm(folder, { recursive: true });
};
afterEach(() => backend.close());

async function open(sid: string, spec: object = {}) {
  const ref = await backend.create({ sid, env: null, task: { kind: 'spec', spec }, toolsetName: null, secrets: {} }, never);
  return backend.session(ref);
}
const say = (text: string) => ({ tool: 'say', input: { text }, taskId: 't' });

describe('LocalBackend', () => {
  beforeEach(openLink);
  afterEach(closeLink);

  test('passes refusals through with their codes', async () => {
    await expect(backend.tasks('nope', 'train', never)).rejects.toMatchObject({ code: 'unknown_variant', status: 404 });
    await expect(backend.tasks(null, 'nope', never)).rejects.toMatchObject({ code: 'invalid_split' });
    await open('taken');
    await expect(open('taken')).rejects.toMatchObject({ code: 'session_exists' });
    const session = await open('raising');
    await expect(session.call({ tool: 'boom', input: {}, taskId: 't' }, never)).rejects.toMatchObject({
      name: 'ToolFailedError',
      message: 'kaboom',
    });
    await expect(session.call({ ...say('x'), upstreamTaskId: 'old' }, never)).rejects.toMatchObject({ code: 'session_lost' });
  });

  test('plays an episode and keeps the text of results', async () => {
    expect(await backend.environments(never)).toEqual(['local']);
    expect(await backend.tasks(null, 'train', never)).toEqual([{ id: 0 }, { id: 1 }, { id: 2 }]);
    const session = await open('episode');
    expect(await session.prompt(never)).toEqual([{ text: 'héllo\n"quoted"', detail: null, type: 'text' }]);
    const text = '","text":" and\nü 🂡';
    expect(await session.call(say(text), never)).toEqual({
      text: `{"ok":true,"output":{"blocks":[${JSON.stringify({ text, detail: null, type: 'text' })}],"metadata":null,"reward":1.0,"finished":false}}`,
      ok: true,
      reason: null,
      reward: 1,
      finished: false,
    });
    await session.ping(never);
    await session.delete(never);
    await session.delete(never);
    await expect(session.prompt(never)).rejects.toMatchObject({ code: 'session_deleted', status: 410 });
  });

  test('matches thousands of concurrent results of any size', async () => {
    const session = await open('many');
    const texts = Array.from({ length: 2000 }, (_, index) => `${index}`.repeat(1 + (index % 97)));
    texts.push('x'.repeat(3_000_000));
    const results = await Promise.all(texts.map(async (text) => session.call(say(text), never)));
    results.forEach(({ text }, index) => expect(text.includes(`"${texts[index]}"`)).toBe(true));
  });

  test('stops waiting on abort and keeps the session', async () => {
    const session = await open('patient', { setup: 1_000 });
    await expect(session.ready!(AbortSignal.timeout(20))).rejects.toMatchObject({ name: 'TimeoutError' });
    await session.ready!(never);
    await expect(session.call({ tool: 'wait', input: {}, taskId: 't' }, AbortSignal.timeout(20))).rejects.toMatchObject({
      name: 'TimeoutError',
    });
    expect(await session.call(say('still here'), never)).toMatchObject({ ok: true });
  });

  test('deletes the episode of an aborted create', async () => {
    begun = [];
    const given = new AbortController();
    const create = { sid: 'left', env: null, task: { kind: 'spec', spec: { create: 500 } }, toolsetName: null, secrets: {} } as const;
    const opening = backend.create(create, given.signal);
    await expect.poll(() => begun).toEqual(['create']);
    given.abort(new Error('left'));
    await expect(opening).rejects.toThrow('left');
    await expect.poll(() => ended).toContain('left');
    expect(standing.has('left')).toBe(false);
    // Its id is free.
    await open('left');
    expect(standing.has('left')).toBe(true);
  });

  test('shares no objects with the environment and passes plain numbers', async () => {
    const session = await open('apart');
    const tasks = await backend.tasks(null, 'train', never);
    (tasks[0] as { id: number }).id = 7;
    expect(await backend.tasks(null, 'train', never)).toEqual([{ id: 0 }, { id: 1 }, { id: 2 }]);
    const input = parseJson('{"value":{"float":1.0,"list":[1]}}') as JsonObject;
    const { text } = await session.call({ tool: 'change', input, taskId: 't' }, never);
    expect(JSON.parse(text)).toMatchObject({ output: { metadata: { type: 'number' } } });
    expect(stringifyJson(input)).toBe('{"value":{"float":1.0,"list":[1]}}');
  });

  test('ends its sessions on close', async () => {
    const session = await open('closing');
    const asked = session.call(say('before'), never);
    await asked;
    await closeLink();
    await backend.close();
    await expect(session.call(say('after'), never)).rejects.toBeInstanceOf(PalestraError);
    await openLink();
  });

  test('reports backend_unreachable without a listener', async () => {
    const dead = new LocalBackend(new LinkClient(path.join(folder, 'nobody.sock')));
    await expect(dead.environments(never)).rejects.toMatchObject({ code: 'backend_unreachable' });
  });

  test('loses the sessions of a dead process', async () => {
    begun = [];
    const session = await open('lost');
    const running = Promise.resolve(session.call({ tool: 'wait', input: {}, taskId: 't' }, never));
    const outcome = running.catch((error: unknown) => error);
    await expect.poll(() => begun).toEqual(['wait']);
    await server.close();
    expect(await outcome).toMatchObject({ code: 'session_lost', status: 410 });
    await expect(session.prompt(never)).rejects.toMatchObject({ code: 'session_lost', status: 410 });
    await expect(backend.environments(never)).rejects.toMatchObject({ code: 'backend_unreachable', status: 503 });
    server = await serve([environment], { link: path.join(folder, 'link.sock') });
    await expect(session.prompt(never)).rejects.toMatchObject({ code: 'session_lost' });
  });
});
