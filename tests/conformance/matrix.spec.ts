import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Server as McpServer } from '@modelcontextprotocol/sdk/server/index.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { defineEnvironment, type RunningServer, serve, tool, z } from '@palestra/environment-kit';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { clients, type Play, type Seen } from './matrix.clients.ts';
import { type FixtureApp, type OpenEnvServerProcess, startOpenEnv } from './support/openenv-server.ts';

/**
 * Every client with every environment: {ORS, OpenEnv, MCP, text} clients x {ORS server, OpenEnv server, MCP server, environment kit}. All
 * see the same prompt, tools, results with rewards, and end. The store has a session with the same calls for each.
 */
const PROMPT = 'What is 6 times 7?';
const TOOLS = ['add', 'submit'];

/** The tools of the OpenEnv fixture `tools_app`, on an ORS server... */
const arithmetic = defineEnvironment<{ id: number }>({
  name: 'arithmetic',
  splits: ['train'],
  tasks: () => [{ id: 0 }],
  prompt: () => PROMPT,
  tools: {
    add: tool({
      description: 'Add two integers.',
      input: z.object({ a: z.int(), b: z.int() }),
      run: ({ a, b }) => ({ content: `{"sum":${a + b}}` }),
    }),
    submit: tool({
      description: 'Submit the final answer.',
      input: z.object({ answer: z.string() }),
      run: ({ answer }) => ({ content: 'submitted', reward: answer === '42' ? 1 : 0, finished: true }),
    }),
  },
});

/** ...and on an MCP server, with its reward in `_meta` (docs/mcp.md). */
function startMcp(): Promise<Server> {
  const schema = (properties: Record<string, object>) => ({ type: 'object' as const, properties, required: Object.keys(properties) });
  const tools = [
    { name: 'add', inputSchema: schema({ a: { type: 'integer' }, b: { type: 'integer' } }) },
    { name: 'submit', inputSchema: schema({ answer: { type: 'string' } }) },
  ];
  const http = createServer(async (request, response) => {
    const server = new McpServer({ name: 'arithmetic', version: '1.0.0' }, { capabilities: { tools: {} }, instructions: PROMPT });
    server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }));
    server.setRequestHandler(CallToolRequestSchema, ({ params: { name, arguments: given = {} } }) => {
      if (name === 'add') return { content: [{ type: 'text' as const, text: `{"sum":${Number(given['a']) + Number(given['b'])}}` }] };
      const meta = { 'palestra/reward': given['answer'] === '42' ? 1 : 0, 'palestra/finished': true };
      return { content: [{ type: 'text' as const, text: 'submitted' }], _meta: meta };
    });
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    response.once('close', () => void transport.close());
    await server.connect(transport as never);
    await transport.handleRequest(request, response);
  });
  return new Promise((resolve) => http.listen(0, '127.0.0.1', () => resolve(http)));
}

let palestra: SharedPalestra;
const running: (OpenEnvServerProcess | { stop(): unknown })[] = [];

async function register(name: string, source: object): Promise<void> {
  const answer = await fetch(`${palestra.url}/v1/environments`, {
    method: 'POST',
    headers: { 'x-api-key': palestra.apiKey, 'content-type': 'application/json' },
    body: JSON.stringify({ name, source }),
  });
  expect([answer.status, await answer.text()]).toEqual([200, expect.anything()]);
}

beforeAll(async () => {
  // Each is stopped also if another one does not start.
  const openEnv = async (app: FixtureApp) => {
    const server = await startOpenEnv({ python: 'PALESTRA_PYTHON_OE_0_10_0', app });
    running.push(server);
    return server;
  };
  const [service, tools, guess, kit, mcp] = await Promise.all([
    sharedPalestra(),
    openEnv('tools_app'),
    openEnv('guess_app'),
    serve([arithmetic]) as Promise<RunningServer>,
    startMcp(),
  ]);
  palestra = service;
  running.push({ stop: () => kit.close() }, { stop: () => mcp.closeAllConnections() ?? mcp.close() });
  await register('on-ors', { kind: 'remote', url: kit.url });
  await register('on-openenv', { kind: 'openenv', url: tools.url });
  await register('on-openenv-actions', { kind: 'openenv', url: guess.url });
  await register('on-mcp', { kind: 'mcp', url: `http://127.0.0.1:${(mcp.address() as AddressInfo).port}/` });
});
afterAll(async () => {
  await Promise.all(running.map((one) => one.stop()));
});

interface Backend {
  /** Name within the test's organisation, or full name. */
  environment: string;
  prompt: string | RegExp;
  tools: string[];
  calls: Play['calls'];
  results: Seen[];
}
const arithmeticPlay = (name: string): Backend => ({
  environment: name,
  prompt: PROMPT,
  tools: TOOLS,
  calls: [
    { tool: 'add', input: { a: 40, b: 2 } },
    { tool: 'submit', input: { answer: '42' } },
  ],
  results: [
    { text: '{"sum":42}', reward: null, finished: false },
    { text: 'submitted', reward: 1, finished: true },
  ],
});

const backends: Record<string, Backend> = {
  'ORS server': arithmeticPlay('on-ors'),
  'MCP server': arithmeticPlay('on-mcp'),
  'OpenEnv server with tools': {
    ...arithmeticPlay('on-openenv'),
    tools: ['add', 'shout', 'slow', 'fail', 'submit'],
    prompt: /What is 6 times 7\?/,
  },
  'OpenEnv server with actions': {
    environment: 'on-openenv-actions',
    prompt: /Guess a number\./,
    tools: ['step'],
    calls: [
      { tool: 'step', input: { guess: 50 } },
      { tool: 'step', input: { guess: 99 } },
    ],
    results: [
      { text: '{"hint":"higher","attempts":1,"extra":null}', reward: 0, finished: false },
      { text: '{"hint":"right","attempts":2,"extra":null}', reward: 1, finished: true },
    ],
  },
  'our kit': {
    environment: 'palestra/echo',
    prompt: 'Task 1: call echo with any text.',
    tools: ['echo'],
    calls: [{ tool: 'echo', input: { text: 'hé "quoted"\n' } }],
    results: [{ text: 'hé "quoted"\n', reward: 0.1, finished: false }],
  },
  'our kit with actions': {
    environment: 'palestra/echo_env',
    prompt: /Echo environment ready!/,
    tools: ['step'],
    calls: [{ tool: 'step', input: { message: 'hello' } }],
    results: [{ text: '{"echoed_message":"hello","message_length":5}', reward: 0.5, finished: false }],
  },
};
/** Task 1 of the split; its answer in the guessing environment is 99. */
const TASK: Record<string, { split: string; index: number }> = {
  'OpenEnv server with actions': { split: 'test', index: 1 },
  'our kit': { split: 'train', index: 1 },
};

describe.each(Object.keys(clients))('%s client', (protocol) => {
  test.each(Object.keys(backends))('on %s', async (name) => {
    const backend = backends[name]!;
    const environment = backend.environment.includes('/') ? backend.environment : `${palestra.namespace}/${backend.environment}`;
    const play = { environment, ...(TASK[name] ?? { split: 'train', index: 0 }), calls: backend.calls };
    const played = await clients[protocol]!(palestra, play);
    if (typeof backend.prompt === 'string') expect(played.prompt).toBe(backend.prompt);
    else expect(played.prompt).toMatch(backend.prompt);
    expect(played.tools).toEqual(backend.tools);
    expect(played.results).toEqual(
      // Text sessions have no null reward (docs/reference/skyrl.md#openreward-integration), so this client cannot tell 0 from null.
      backend.results.map((result) => (protocol === 'text' && result.reward === 0 ? { ...result, reward: null } : result)),
    );
  });
});

test('stores a session with its calls and rewards for every client', async () => {
  const get = async (path: string) => {
    const answer = await fetch(palestra.url + path, { headers: { 'x-api-key': palestra.apiKey } });
    return (await answer.json()) as any;
  };
  for (const { environment, calls, results } of Object.values(backends)) {
    const name = environment.includes('/') ? environment : `${palestra.namespace}/${environment}`;
    const expected = calls.map(({ tool: called }, index) => [called, results[index]!.reward]);
    const check = async () => {
      const { sessions } = await get(`/v1/sessions?environment=${encodeURIComponent(name)}&limit=100`);
      const played = [];
      for (const { sid } of sessions) {
        const { calls: traced } = await get(`/v1/sessions/${sid}/calls?after=0`);
        // An OpenEnv client resets by itself, which is in its trace.
        played.push(traced.filter(({ tool }: { tool: string }) => tool !== 'reset').map((call: any) => [call.tool, call.reward ?? null]));
      }
      expect(played.filter((one) => JSON.stringify(one) === JSON.stringify(expected))).toHaveLength(Object.keys(clients).length);
    };
    // Calls of a socket are stored shortly after their replies.
    await vi.waitFor(check, { timeout: 20_000, interval: 200 });
  }
});
