import type { ServerResponse } from 'node:http';
import { PalestraError } from '@palestra/protocol';
import type { BackendSession } from '@palestra/session';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { WebSocket } from 'ws';
import { OpenEnvBackend } from './openenv-backend.ts';
import { type Script, type ScriptedServer, startScripted } from './scripted-server.fixture.ts';

/** Invalid answers of servers, over real sockets. Valid ones are in tests/conformance. */
// Hundreds of sockets on a busy machine.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let stop: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of stop) await end();
  stop = [];
});

const soon = () => AbortSignal.timeout(30_000);
const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

async function start(script: Script): Promise<{ server: ScriptedServer; backend: OpenEnvBackend }> {
  const server = await startScripted(script);
  const backend = new OpenEnvBackend({ url: server.url });
  stop.push(async () => {
    await backend.close();
    await server.stop();
  });
  return { server, backend };
}

const create = (backend: OpenEnvBackend, signal = soon()) =>
  backend.create({ sid: 'sid', env: null, task: { kind: 'spec', spec: {} }, toolsetName: null, secrets: {} }, signal);
const open = async (backend: OpenEnvBackend) => backend.session(await create(backend));

/** Sends a step with a number and returns the number in its reply. */
async function step(session: BackendSession, n: number, signal = soon()): Promise<number> {
  const { text } = await session.call({ tool: 'step', input: { n }, taskId: '' }, signal);
  const { output } = JSON.parse(text) as { output: { blocks: { text: string }[] } };
  return (JSON.parse(output.blocks[0]!.text) as { n: number }).n;
}

async function steps(session: BackendSession): Promise<number> {
  const { reply } = await session.native!.exchange({ type: 'state' }, null, soon());
  return (JSON.parse(reply) as { data: { step_count: number } }).data.step_count;
}

async function failure(promise: Promise<unknown>): Promise<PalestraError> {
  const error = await promise.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(PalestraError);
  return error as PalestraError;
}

async function expectEmpty(server: ScriptedServer): Promise<void> {
  await expect.poll(() => [server.sockets(), server.sessions()], { interval: 5 }).toEqual([0, 0]);
}

/** A raw frame that a library would not send. */
function sendRaw(socket: WebSocket, frame: Buffer): void {
  (socket as unknown as { _socket: { write(data: Buffer): void } })._socket.write(frame);
}

async function slowly(socket: WebSocket, reply: string, ms: number): Promise<boolean> {
  await pause(ms);
  if (socket.readyState === socket.OPEN) socket.send(reply);
  return true;
}

const onStep =
  (n: number, act: (socket: WebSocket, reply: string) => boolean | void | Promise<boolean>): Script['onMessage'] =>
  (socket, reply, message) =>
    message.n === n ? act(socket, reply) : undefined;

describe.each(['C', 'E'] as const)('a server of generation %s', (generation) => {
  test('is read once for concurrent callers', async () => {
    const { backend } = await start({ generation });
    const shapes = await Promise.all([backend.native.shape(soon()), backend.native.shape(soon())]);
    expect(shapes[0]).toMatchObject({ generation, mode: 'simulation', toolActions: false, metadata: { name: 'Numbers' } });
    expect(shapes[1]).toBe(shapes[0]);
    expect(await backend.environments(soon())).toEqual(['numbers']);
  });

  test('ignores a reply that comes too late', async () => {
    const { backend, server } = await start({
      generation,
      onMessage: onStep(1, (socket, reply) => slowly(socket, reply, 1_500)),
    });
    const session = await open(backend);
    await expect(step(session, 1, AbortSignal.timeout(1_000))).rejects.toMatchObject({ name: 'TimeoutError' });
    expect(await failure(step(session, 2))).toMatchObject({ code: 'session_lost' });
    // Its slot is free, although no client deleted it.
    await expectEmpty(server);
    expect(server.seen.filter(({ type }) => type === 'step')).toEqual([{ type: 'step', n: 1 }]);
  });

  const broken: [what: string, act: (socket: WebSocket, reply: string) => boolean | void][] = [
    ['cuts the connection', (socket) => (socket.terminate(), true)],
    ['closes it', (socket) => (socket.close(1000), true)],
    [
      'cuts it in the middle of a frame',
      (socket, reply) => {
        sendRaw(socket, Buffer.concat([Buffer.from([0x81, 0x7e, 0x10, 0x00]), Buffer.from(reply)]));
        setTimeout(() => socket.terminate(), 50);
        return true;
      },
    ],
    ['sends a binary frame', (socket, reply) => (socket.send(Buffer.from(reply), { binary: true }), true)],
    ['sends invalid UTF-8', (socket) => (socket.send(Buffer.from([0x7b, 0xff, 0xfe]), { binary: false }), true)],
    ['sends no JSON', (socket) => (socket.send('<html>'), true)],
    ['sends half of the JSON', (socket, reply) => (socket.send(reply.slice(0, -3)), true)],
    ['sends a state', (socket) => (socket.send('{"type":"state","data":{}}'), true)],
    ['sends an unknown type', (socket) => (socket.send('{"type":"surprise","data":{}}'), true)],
    [
      'ends the session',
      (socket) => (socket.send('{"type":"error","data":{"message":"no","code":"SESSION_ERROR"}}'), socket.close(), true),
    ],
  ];
  test.each(broken)('loses the session and does not repeat the step if a server %s instead of replying', async (_what, act) => {
    const { backend, server } = await start({ generation, onMessage: onStep(2, act) });
    const session = await open(backend);
    expect(await step(session, 1)).toBe(1);
    expect(await failure(step(session, 2))).toMatchObject({ code: 'session_lost', status: 410 });
    expect(await failure(step(session, 3))).toMatchObject({ code: 'session_lost' });
    expect(server.seen.filter(({ type }) => type === 'step').map(({ n }) => n)).toEqual([1, 2]);
    await expectEmpty(server);
  });

  test('ends the session on a frame of 200 MiB and does not repeat the step', async () => {
    const announce = (socket: WebSocket) => {
      const length = Buffer.alloc(8);
      length.writeBigUInt64BE(200n * 1024n * 1024n);
      return (sendRaw(socket, Buffer.concat([Buffer.from([0x81, 0x7f]), length])), true);
    };
    const { backend, server } = await start({ generation, onMessage: onStep(2, announce) });
    const session = await open(backend);
    expect(await step(session, 1)).toBe(1);
    expect(await failure(step(session, 2))).toMatchObject({ code: 'answer_too_large' });
    expect(await failure(step(session, 3))).toMatchObject({ code: 'session_lost' });
    expect(server.seen.filter(({ type }) => type === 'step').map(({ n }) => n)).toEqual([1, 2]);
    await expectEmpty(server);
  });

  test('does not take a duplicate reply for the next one', async () => {
    const { backend, server } = await start({ generation, onMessage: onStep(1, (socket, reply) => socket.send(reply)) });
    const session = await open(backend);
    expect(await step(session, 1)).toBe(1);
    if (generation === 'C') expect(await failure(step(session, 2))).toMatchObject({ code: 'session_lost' });
    else {
      await expect.poll(() => server.sockets(), { interval: 5 }).toBe(0);
      expect(await step(session, 2)).toBe(2);
      expect(await steps(session)).toBe(2);
    }
    expect(server.seen.filter(({ n }) => n === 1)).toHaveLength(1);
  });

  test('does not take a duplicate that arrives after the next message for its reply', async () => {
    let first = '';
    const { backend } = await start({
      generation,
      onMessage: (socket, reply, { n }) => {
        if (n === 1) first = reply;
        if (n !== 2) return false;
        socket.send(first);
        return slowly(socket, reply, 30);
      },
    });
    const session = await open(backend);
    expect(await step(session, 1)).toBe(1);
    expect(await failure(step(session, 2))).toMatchObject({ code: 'session_lost' });
  });

  test('accepts equal replies to different messages after a fence', async () => {
    const same = '{"type":"observation","data":{"observation":{"n":0},"reward":0,"done":false}}';
    const { backend, server } = await start({
      generation,
      onMessage: (socket, _reply, { type }) => type === 'step' && (socket.send(same), true),
    });
    const session = await open(backend);
    for (const n of [1, 2, 2, 2, 3]) expect(await step(session, n)).toBe(0);
    expect(await steps(session)).toBe(5);
    expect(server.seen).toHaveLength(7);
  });

  test('ends the socket on an unexpected frame', async () => {
    const sockets: WebSocket[] = [];
    const { backend, server } = await start({ generation, onSocket: (socket) => void sockets.push(socket) });
    const session = await open(backend);
    await step(session, 1);
    sockets.at(-1)!.send('{"type":"observation","data":{"observation":{"n":9}}}');
    await expect.poll(() => server.sockets(), { interval: 5 }).toBe(0);
    if (generation === 'C') expect(await failure(step(session, 2))).toMatchObject({ code: 'session_lost' });
    else expect(await step(session, 2)).toBe(2);
  });

  test('sends messages of a session one after another, in order', async () => {
    const { backend, server } = await start({
      generation,
      onMessage: (socket, reply, { type }) => type === 'step' && slowly(socket, reply, 1),
    });
    const session = await open(backend);
    const numbers = Array.from({ length: 30 }, (_, n) => n + 1);
    expect(await Promise.all(numbers.map((n) => step(session, n)))).toEqual(numbers);
    expect(server.seen.flatMap(({ type, n }) => (type === 'step' ? [n] : []))).toEqual(numbers);
    const flood = await Promise.allSettled(Array.from({ length: 300 }, (_, n) => step(session, 100 + n)));
    const refused = flood.flatMap((result) => (result.status === 'rejected' ? [result.reason as PalestraError] : []));
    expect(refused).toHaveLength(44);
    expect(refused.every(({ code }) => code === 'capacity_exhausted')).toBe(true);
  });

  test('does not send a message that was aborted in the queue', async () => {
    const { backend, server } = await start({
      generation,
      onMessage: onStep(1, (socket, reply) => slowly(socket, reply, 200)),
    });
    const session = await open(backend);
    const first = step(session, 1);
    await expect(step(session, 2, AbortSignal.timeout(50))).rejects.toMatchObject({ name: 'TimeoutError' });
    expect(await first).toBe(1);
    expect(await step(session, 3)).toBe(3);
    expect(server.seen.map(({ n }) => n)).not.toContain(2);
  });

  test('closes the socket once at the end of a session', async () => {
    const { backend, server } = await start({ generation });
    const session = await open(backend);
    await Promise.all([session.delete(soon()), session.delete(soon())]);
    expect([server.sockets(), server.sessions()]).toEqual([0, 0]);
    expect(await failure(step(session, 1))).toMatchObject({ code: 'session_deleted' });
    const ref = await create(backend);
    await backend.session(ref).delete(soon());
    await backend.session(ref).delete(soon());
    expect(await failure(step(backend.session(ref), 1))).toMatchObject({ code: 'session_lost' });
  });

  test('ends the first episode on a second create with its SID', async () => {
    const { backend, server } = await start({ generation });
    const session = await open(backend);
    const again = await open(backend);
    expect(await failure(step(session, 1))).toMatchObject({ code: 'session_deleted' });
    expect(await step(again, 1)).toBe(1);
    expect(server.sockets()).toBe(1);
  });

  test('retries an upgrade that a proxy refused, but not one that the server refused', async () => {
    // The first upgrade of generation E tests whether sockets can attach.
    const passing = await start({ generation, refuseUpgrade: (count) => (count === 2 ? 503 : null) });
    const [one, two] = [await open(passing.backend), await open(passing.backend)];
    expect(await step(two, 7)).toBe(7);
    await one.delete(soon());
    const shut = await start({ generation, refuseUpgrade: () => 401 });
    expect(await failure(create(shut.backend))).toMatchObject({ code: 'backend_invalid', detail: expect.stringContaining('401') });
    expect(shut.server.sessions()).toBe(0);
  });

  test('frees the slot of an unanswered reset when its caller stops waiting', async () => {
    const { backend, server } = await start({ generation, onMessage: (_socket, _reply, { type }) => type === 'reset' });
    await expect(create(backend, AbortSignal.timeout(300))).rejects.toMatchObject({ name: 'TimeoutError' });
    await expectEmpty(server);
  });
});

test.each(['/schema', '/openapi.json', '/list_environments', '/metadata'])(
  'does not take a server that answers 503 to %s for another kind of server',
  async (missing) => {
    let isAway = true;
    const onGet = (path: string, response: ServerResponse) => isAway && path === missing && (response.writeHead(503).end(), true);
    const { backend } = await start({ generation: 'E', onGet });
    expect(await failure(backend.native.shape(soon()))).toMatchObject({ code: 'backend_unreachable' });
    isAway = false;
    expect(await backend.native.shape(soon())).toMatchObject({ generation: 'E', environments: ['numbers'], metadata: { name: 'Numbers' } });
  },
);

test('a connection that breaks while the server is detected does not make it an older one', async () => {
  const { backend } = await start({
    generation: 'E',
    breakUpgrade: (count) => count === 1,
    refuseUpgrade: (count) => (count === 2 ? 503 : null),
  });
  for (let times = 0; times < 2; times += 1) {
    expect(await failure(backend.native.shape(soon()))).toMatchObject({ code: 'backend_unreachable' });
  }
  expect(await backend.native.shape(soon())).toMatchObject({ generation: 'E' });
});

test('sends a forwarded request once and does not report that it did not run', async () => {
  let posts = 0;
  const { server, backend } = await start({ generation: 'E', onPost: (socket) => (socket.destroy(), (posts += 1), true) });
  const relay = (to: OpenEnvBackend) =>
    to.native.relay({ method: 'POST', path: '/step', body: Buffer.from('{}'), contentType: null }, soon());
  expect(await failure(relay(backend))).toMatchObject({ code: 'backend_invalid', detail: expect.stringContaining('broke the connection') });
  expect(posts).toBe(1);
  await server.stop();
  expect(await failure(relay(backend))).toMatchObject({ code: 'backend_unreachable' });
  stop = [() => backend.close()];
});

test.each([
  [503, 'backend_unreachable'],
  [502, 'session_lost'],
])('a proxy that answers %i to a step of a server without sockets is no failure of the environment', async (status, code) => {
  let steps = 0;
  const http = (answer: number, body: string) =>
    `HTTP/1.1 ${answer} X\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  const observation = '{"observation":{"n":1},"reward":1,"done":false}';
  const { backend } = await start({
    generation: 'C',
    onGet: (path, response) => {
      if (path === '/health') response.end('{"status":"healthy"}');
      else response.writeHead(404).end();
      return true;
    },
    onPost: (socket) => (socket.end((steps += 1) === 2 ? http(status, '<html>') : http(200, observation)), true),
  });
  const session = await open(backend);
  expect(await failure(step(session, 1))).toMatchObject({ code });
  if (code === 'backend_unreachable') expect(await step(session, 1)).toBe(1);
});

describe('a full server', () => {
  const refusal = '{"type":"error","data":{"message":"Server at capacity: 1/1","code":"CAPACITY_REACHED"}}';
  test('refuses with an error frame or by closing the socket', async () => {
    const { backend } = await start({
      generation: 'C',
      onSocket: (socket, count) => {
        if (count > 2) return false;
        if (count === 1) socket.send(refusal);
        return (socket.close(1000), true);
      },
    });
    expect(await failure(create(backend))).toMatchObject({ code: 'capacity_exhausted', detail: 'Server at capacity: 1/1' });
    expect(await failure(create(backend))).toMatchObject({ code: 'capacity_exhausted', status: 429 });
    expect(await step(await open(backend), 1)).toBe(1);
  });

  test('reports a failing constructor as environment_failed', async () => {
    const words = '{"type":"error","data":{"message":"Environment factory failed","code":"FACTORY_ERROR"}}';
    const { backend } = await start({ generation: 'C', onSocket: (socket) => (socket.send(words), socket.close(1000), true) });
    expect(await failure(create(backend))).toMatchObject({ code: 'environment_failed', detail: 'Environment factory failed' });
  });
});

describe('an attached session', () => {
  test('survives its socket while no step is on its way', async () => {
    const sockets: WebSocket[] = [];
    const { backend, server } = await start({ generation: 'E', onSocket: (socket) => void sockets.push(socket) });
    const session = await open(backend);
    await step(session, 1);
    sockets.at(-1)!.terminate();
    // Between two pauses the client reads the end of the connection, however slow the machine is.
    for (let turn = 0; turn < 2; turn += 1) await pause(50);
    expect(await step(session, 2)).toBe(2);
    expect(await steps(session)).toBe(2);
    expect([server.sockets(), server.sessions()]).toEqual([1, 1]);
  });

  test('repeats a read whose reply was lost', async () => {
    let cut = true;
    const { backend } = await start({
      generation: 'E',
      onMessage: (socket, _reply, { type }) => {
        if (type !== 'state' || !cut) return false;
        cut = false;
        return (socket.terminate(), true);
      },
    });
    const session = await open(backend);
    await step(session, 1);
    expect(await steps(session)).toBe(1);
  });
});

/** Small deterministic numbers. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) / 2 ** 32;
}

test.each(['C', 'E'] as const)(
  'however replies are doubled and delayed, none is taken for another one (generation %s)',
  async (generation) => {
    const random = randomOf(20_261_121);
    let copies = 0;
    const { backend } = await start({
      generation,
      onMessage: async (socket, reply, { type }) => {
        if (type !== 'step') return false;
        await slowly(socket, reply, random() * 6);
        if (random() < 0.15) {
          copies += 1;
          setTimeout(() => socket.readyState === socket.OPEN && socket.send(reply), random() * 25);
        }
        return true;
      },
    });
    let [right, lost] = [0, 0];
    const play = async () => {
      const session = backend.session(
        await backend.create(
          { sid: `${Math.random()}`, env: null, task: { kind: 'spec', spec: {} }, toolsetName: null, secrets: {} },
          soon(),
        ),
      );
      for (let n = 1; n <= 40; n += 1) {
        const answer = await step(session, n).catch((error: unknown) => error);
        if (typeof answer === 'number') {
          expect(answer).toBe(n);
          right += 1;
        } else {
          expect(answer).toMatchObject({ code: 'session_lost' });
          lost += 1;
          break;
        }
        if (random() < 0.5) await pause(random() * 6);
      }
      await session.delete(soon());
    };
    // Limits concurrency, so that replies are not late on a busy machine.
    for (let round = 0; round < 3; round += 1) await Promise.all(Array.from({ length: 20 }, play));
    expect(copies).toBeGreaterThan(50);
    expect(right).toBeGreaterThan(150);
    expect(lost).toBeGreaterThan(5);
  },
);
