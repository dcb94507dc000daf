import { randomUUID } from 'node:crypto';
import { request as send } from 'node:http';
import type { Socket } from 'node:net';
import { defineEnvironment, serve, tool } from '@palestra/environment-kit';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { WebSocket } from 'ws';
import { z } from 'zod';
import { randomOf } from '../../support/random.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';

/** Clients that vanish at any moment, of every dialect: all slots come back, and whoever comes next is served. */
const CAPACITY = 3;
/** Longer than a pause of a busy machine: a client that is there must not count as gone. */
const HEARTBEAT_S = 5;
const CLIENTS_EACH = 24;
/** Sessions without a heartbeat are looked for every five seconds; a busy machine takes several times as long. */
const SWEEP_MS = 40_000;
const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** An environment that takes its time, and how many of its episodes stand. */
function slowEnvironment() {
  const standing = { episodes: 0 };
  const slow = defineEnvironment<{ id: number }, object>({
    name: 'slow',
    splits: ['train'],
    tasks: () => [{ id: 0 }, { id: 1 }],
    create: async () => {
      standing.episodes += 1;
      await pause(300);
      return {};
    },
    setup: () => pause(300),
    prompt: () => 'Wait.',
    tools: {
      doze: tool({
        description: 'Takes its time',
        input: z.object({ ms: z.number() }),
        run: async ({ ms }) => {
          await pause(ms);
          return 'awake';
        },
      }),
    },
    teardown: () => {
      standing.episodes -= 1;
    },
  });
  return { slow, standing };
}

let server: TestServer;
beforeAll(async () => {
  server = await sharedServer();
});
afterAll(() => server?.close());

/** What a client has open, so that all of it can be cut at once. */
class Wire {
  readonly #cuts = new Set<() => void>();
  #cut = false;

  /** Resolves with the answer's text, or null when the wire was cut. */
  http(
    method: string,
    path: string,
    headers: Record<string, string>,
    body?: unknown,
  ): Promise<{ status: number; text: string; headers: NodeJS.Dict<string | string[]> } | null> {
    if (this.#cut) return Promise.resolve(null);
    return new Promise((resolve) => {
      const { hostname, port } = new URL(server.url);
      const sent = send(
        {
          hostname,
          port,
          method,
          path,
          agent: false,
          headers: {
            'x-api-key': server.apiKey,
            'content-type': 'application/json',
            accept: 'application/json, text/event-stream',
            ...headers,
          },
        },
        (answer) => {
          let text = '';
          answer.on('data', (piece: Buffer) => (text += piece.toString()));
          answer.on('end', () => resolve({ status: answer.statusCode!, text, headers: answer.headers }));
          answer.on('error', () => resolve(null));
          answer.on('close', () => resolve(null));
        },
      );
      sent.on('error', () => resolve(null));
      this.#cuts.add(() => sent.destroy());
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  socket(path: string): { say(message: unknown): void; hear(): Promise<string | null> } {
    const socket = new WebSocket(`${server.url.replace('http', 'ws')}${path}`, { headers: { 'x-api-key': server.apiKey } });
    const heard: string[] = [];
    const waiting: ((text: string | null) => void)[] = [];
    let over = false;
    socket.on('message', (data: Buffer) => (waiting.length > 0 ? waiting.shift()!(data.toString()) : heard.push(data.toString())));
    const end = () => {
      over = true;
      for (const resolve of waiting.splice(0)) resolve(null);
    };
    socket.on('close', end).on('error', end);
    this.#cuts.add(() => {
      // Without a word: not even a FIN that asks for an answer.
      (socket as unknown as { _socket?: Socket })._socket?.destroy();
      socket.terminate();
    });
    const opened = new Promise<void>((resolve) => socket.on('open', resolve));
    return {
      say: (message) => void opened.then(() => socket.send(JSON.stringify(message))),
      hear: () =>
        heard.length > 0 ? Promise.resolve(heard.shift()!) : over ? Promise.resolve(null) : new Promise((resolve) => waiting.push(resolve)),
    };
  }

  cut(): void {
    this.#cut = true;
    for (const cut of this.#cuts) cut();
  }
}

/** Each plays one episode; false when it was cut. */
const CLIENTS: Record<string, (wire: Wire, environment: string) => Promise<boolean>> = {
  ORS: async (wire, environment) => {
    const sid = randomUUID();
    const headers = { 'x-deployment': environment, 'x-session-id': sid };
    if ((await wire.http('POST', '/create_session', headers, { task_id: sid })) === null) return false;
    if ((await wire.http('POST', '/create', headers, { split: 'train', index: 0 })) === null) return false;
    if ((await wire.http('GET', '/slow/prompt', headers)) === null) return false;
    if ((await wire.http('POST', '/slow/call', headers, { name: 'doze', input: { ms: 300 } })) === null) return false;
    return (await wire.http('POST', '/delete', headers)) !== null;
  },
  'OpenEnv socket': async (wire, environment) => {
    const socket = wire.socket(`/openenv/${environment}/ws`);
    for (const message of [
      { type: 'reset', data: {} },
      { type: 'step', data: { type: 'call_tool', tool_name: 'doze', arguments: { ms: 300 } } },
      { type: 'close' },
    ]) {
      socket.say(message);
      if (message.type === 'close') return true;
      if ((await socket.hear()) === null) return false;
    }
    return true;
  },
  'OpenEnv container': async (wire, environment) => {
    const path = `/openenv/${environment}/container/${randomUUID()}`;
    if ((await wire.http('POST', `${path}/reset`, {}, {})) === null) return false;
    if (
      (await wire.http('POST', `${path}/step`, {}, { action: { type: 'call_tool', tool_name: 'doze', arguments: { ms: 300 } } })) === null
    )
      return false;
    return (await wire.http('DELETE', path, {})) !== null;
  },
  MCP: async (wire, environment) => {
    const path = `/mcp/${environment}`;
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } };
    const opened = await wire.http('POST', path, {}, { jsonrpc: '2.0', id: 0, method: 'initialize', params });
    if (opened === null) return false;
    const headers = { 'mcp-session-id': String(opened.headers['mcp-session-id'] ?? '') };
    await wire.http('POST', path, headers, { jsonrpc: '2.0', method: 'notifications/initialized' });
    if (
      (await wire.http('POST', path, headers, {
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'doze', arguments: { ms: 300 } },
      })) === null
    )
      return false;
    return (await wire.http('DELETE', path, headers)) !== null;
  },
  'text over HTTP': async (wire, environment) => {
    const opened = await wire.http('POST', '/v1/text-sessions', {}, { environment, split: 'train', index: 0 });
    if (opened === null) return false;
    const path = `/v1/text-sessions/${(JSON.parse(opened.text) as { id: string }).id}`;
    const text = '<tool_call>{"name": "doze", "arguments": {"ms": 300}}</tool_call>';
    if ((await wire.http('POST', `${path}/step`, {}, { text })) === null) return false;
    return (await wire.http('DELETE', path, {})) !== null;
  },
};

describe('clients that disconnect at any moment', () => {
  test.concurrent.for(Object.entries(CLIENTS))('%s: give back their slots', async ([name, play], { expect, onTestFinished }) => {
    const { slow, standing } = slowEnvironment();
    const upstream = await serve([slow]);
    onTestFinished(() => upstream.close());
    const called = name.toLowerCase().replaceAll(' ', '-');
    const environment = `${server.orgName}/${called}-env`;
    await server.request('POST', '/v1/environments', { body: { name: `${called}-env`, source: { kind: 'remote', url: upstream.url } } });
    const sessions = { capacity: CAPACITY, heartbeat_timeout_s: HEARTBEAT_S };
    expect(await server.request('PUT', `/v1/environments/${environment}/details`, { body: { sessions } })).toMatchObject({ status: 200 });
    const slots = async () => {
      const { body } = await server.request('GET', `/v1/slots?environment=${environment}`);
      const { used, waiting } = body.environments[0] as { used: number; waiting: number };
      return { used, waiting };
    };
    const random = randomOf(name.length);
    const moments = Array.from({ length: CLIENTS_EACH }, () => [random() * 2_000, random() * 2_500] as const);
    await Promise.all(
      moments.map(async ([comes, stays]) => {
        await pause(comes);
        const wire = new Wire();
        const playing = play(wire, environment);
        await pause(stays);
        wire.cut();
        await playing;
      }),
    );
    // Nobody waits whose client has gone; what was open ends with its heartbeats.
    await expect.poll(slots, { timeout: 2_000 * HEARTBEAT_S + SWEEP_MS }).toEqual({ used: 0, waiting: 0 });
    await expect.poll(() => standing.episodes).toBe(0);
    expect(await play(new Wire(), environment)).toBe(true);
    await expect.poll(slots).toEqual({ used: 0, waiting: 0 });
    // One that never got a slot ends with its reservation.
    const living = async () =>
      (await server.request('GET', `/v1/sessions?environment=${environment}&state=live`)).body.sessions as unknown[];
    await expect.poll(living).toEqual([]);
  });
});
