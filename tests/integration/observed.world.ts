import { defineEnvironment, type RunningServer, serve, tool, z } from '@palestra/environment-kit';
import { SseParser } from '@palestra/kit/sse';
import type { Palestra } from '../support/palestra.ts';
import type { TestServer } from '../support/server.ts';

/** A running service, in this process or in one of its own. */
export type Service = Pick<TestServer, 'request' | 'orgName'>;

/** A kit environment over HTTP that scores, raises, dawdles and tells its secret, for the tests of what is seen of sessions. */

export const observed = defineEnvironment<{ broken?: boolean }, { secret: string; heard: string[] }>({
  name: 'observed',
  splits: ['train'],
  tasks: () => [{}, { broken: true }],
  create: ({ secrets }) => ({ secret: secrets['TOKEN'] ?? 'no secret', heard: [] }),
  setup: ({ task, state }) => {
    if (task.broken) throw new Error(`setup cannot go on with ${state.secret}`);
  },
  prompt: ({ state }) => `Your token is ${state.secret}.`,
  tools: {
    score: tool({
      description: 'Gives reward',
      input: z.object({ reward: z.number(), finished: z.boolean().optional() }),
      run: ({ reward, finished }) => ({
        content: ['scored', 'well'].map((text) => ({ type: 'text' as const, text, detail: null })),
        reward,
        finished,
      }),
    }),
    raise: tool({
      description: 'Raises',
      run: (_input, { state }) => {
        throw new Error(`it broke with ${state.secret}`);
      },
    }),
    slow: tool({ description: 'Dawdles', run: () => new Promise<string>((resolve) => setTimeout(() => resolve('late'), 30_000).unref()) }),
    tell: tool({ description: 'Tells', run: (_input, { state }) => `the secret is ${state.secret}\u0000` }),
    hear: tool({
      description: 'Tells whether it was told the secret',
      input: z.object({ text: z.string() }),
      run: ({ text }, { state }) => (text === state.secret ? 'that is it' : 'that is not it'),
    }),
  },
});

export interface World {
  upstream: RunningServer;
  environment: string;
}

/** The built service as a process of its own; `told` hears every answer. */
export function overHttp(palestra: Palestra, told: (answer: string) => void = () => {}): Service {
  return {
    orgName: palestra.namespace,
    async request(method, path, { body, headers = {} } = {}) {
      const answer = await fetch(palestra.url + path, {
        method,
        headers: { 'x-api-key': palestra.apiKey, ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await answer.text();
      told(text);
      const parsed: unknown = /^[[{"]/.test(text) ? JSON.parse(text) : text;
      return { status: answer.status, body: parsed, headers: answer.headers };
    },
  };
}

/** Registers the environment with the server. */
export async function startObserved(server: Service): Promise<World> {
  const upstream = await serve([observed]);
  const body = { name: 'observed', description: '', source: { kind: 'remote', url: upstream.url } };
  const answer = await server.request('POST', '/v1/environments', { body });
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
  return { upstream, environment: `${server.orgName}/observed` };
}

export type Headers = Record<string, string>;

/** Opens a session as the SDK does. */
export async function openSession(server: Service, environment: string, headers: Headers = {}, index = 0): Promise<string> {
  const all = { 'x-deployment': environment, ...headers };
  const reserved = await server.request('POST', '/create_session', { body: {}, headers: all });
  const sid = readEvents(reserved.body)[0]!.data;
  const created = await server.request('POST', '/create', { body: { split: 'train', index }, headers: { ...all, 'x-session-id': sid } });
  if (created.status !== 200) throw new Error(JSON.stringify(created.body));
  return sid;
}

export const readEvents = (text: unknown) => new SseParser().push(String(text));

/** A call's whole stream: its task id, and what its end or error says. */
export async function callTool(server: Service, sid: string, name: string, input: object = {}, headers: Headers = {}) {
  const answer = await server.request('POST', '/call', { body: { name, input }, headers: { 'x-session-id': sid, ...headers } });
  const events = readEvents(answer.body);
  const text =
    answer.status !== 200
      ? JSON.stringify(answer.body)
      : events.flatMap(({ event, data }) => (event === 'chunk' || event === 'end' || event === 'error' ? [data] : [])).join('');
  return { status: answer.status, taskId: events.find(({ event }) => event === 'task_id')?.data ?? '', text };
}

export const closeSession = (server: Service, sid: string) => server.request('POST', '/delete', { headers: { 'x-session-id': sid } });

/** Asks again until it answers something else than null. */
export async function eventually<T>(ask: () => Promise<T | null>, withinMs = 40_000): Promise<T> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (answer !== null) return answer;
    if (Date.now() > deadline) throw new Error(`did not happen within ${withinMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
