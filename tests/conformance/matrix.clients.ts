import { once } from 'node:events';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { PalestraClient } from '@palestra/client';
import type { JsonObject } from '@palestra/protocol';
import { WebSocket } from 'ws';
import type { Palestra } from '../support/palestra.ts';

/** What a client of every protocol sees of one call. */
export interface Seen {
  text: string;
  reward: number | null;
  finished: boolean;
}

export interface Play {
  /** `owner/name` */
  environment: string;
  split: string;
  index: number;
  calls: { tool: string; input: JsonObject }[];
}

export interface Played {
  prompt: string;
  tools: string[];
  results: Seen[];
}

export type ClientOfDialect = (palestra: Pick<Palestra, 'url' | 'apiKey'>, play: Play) => Promise<Played>;

interface Block {
  type: string;
  text?: string;
}
const textOf = (blocks: readonly Block[]) => blocks.map(({ text }) => text ?? '').join('');

const ors: ClientOfDialect = async (palestra, { environment, split, index, calls }) => {
  const client = new PalestraClient({ url: palestra.url, apiKey: palestra.apiKey });
  await using session = await client.session({ environment, split, index });
  const prompt = textOf((await session.prompt()) as Block[]);
  const tools = (await session.taskTools()).tools.map(({ name }) => name);
  const results: Seen[] = [];
  for (const { tool, input } of calls) {
    const output = await session.call(tool, input);
    results.push({ text: textOf(output.blocks as Block[]), reward: output.reward, finished: output.finished });
  }
  return { prompt, tools, results };
};

/** Frames as every generation of OpenEnv's client sends them; the clients themselves are in openenv-clients.spec.ts. */
const openenv: ClientOfDialect = async (palestra, { environment, split, index, calls }) => {
  const socket = new WebSocket(`${palestra.url.replace('http', 'ws')}/k/${palestra.apiKey}/openenv/${environment}/ws`);
  await once(socket, 'open');
  const ask = async (message: JsonObject) => {
    socket.send(JSON.stringify(message));
    const [frame] = (await once(socket, 'message', { signal: AbortSignal.timeout(30_000) })) as [Buffer];
    const reply = JSON.parse(frame.toString()) as { type: string; data: any };
    if (reply.type === 'error') throw new Error(`${reply.data.code}: ${reply.data.message}`);
    return reply.data;
  };
  const actions = calls.some(({ tool }) => tool === 'step');
  const reset = await ask({ type: 'reset', data: { split, index } });
  const listed = actions ? { observation: { tools: [{ name: 'step' }] } } : await ask({ type: 'step', data: { type: 'list_tools' } });
  const results: Seen[] = [];
  for (const { tool, input } of calls) {
    const data = actions ? input : { type: 'call_tool', tool_name: tool, arguments: input };
    const { observation, reward, done } = await ask({ type: 'step', data });
    const { metadata: _metadata, ...rest } = observation;
    results.push({ text: actions ? JSON.stringify(rest) : textOf(observation.result.content), reward, finished: done });
  }
  socket.send('{"type":"close"}');
  socket.close();
  const rest = reset.observation;
  return {
    prompt: rest.prompt ?? JSON.stringify(reset.observation),
    tools: listed.observation.tools.map(({ name }: { name: string }) => name),
    results,
  };
};

const mcp: ClientOfDialect = async (palestra, { environment, split, index, calls }) => {
  const client = new Client({ name: 'matrix', version: '1.0.0' });
  const url = new URL(`${palestra.url}/mcp/${environment}?split=${split}&index=${index}`);
  const transport = new StreamableHTTPClientTransport(url, { requestInit: { headers: { authorization: `Bearer ${palestra.apiKey}` } } });
  // The SDK's own type of the interface is stricter about undefined than its class.
  await client.connect(transport as never);
  const prompt = client.getInstructions() ?? '';
  const tools = (await client.listTools()).tools.map(({ name }) => name);
  const results: Seen[] = [];
  for (const { tool, input } of calls) {
    const result = await client.callTool({ name: tool, arguments: input });
    const meta = result._meta ?? {};
    results.push({
      text: textOf(result.content as Block[]),
      reward: (meta['palestra/reward'] ?? null) as number | null,
      finished: meta['palestra/finished'] === true,
    });
  }
  await transport.terminateSession();
  await client.close();
  return { prompt, tools, results };
};

const text: ClientOfDialect = async (palestra, { environment, split, index, calls }) => {
  const request = async (method: string, path: string, body?: unknown) => {
    const answer = await fetch(`${palestra.url}/v1/text-sessions${path}`, {
      method,
      headers: { 'x-api-key': palestra.apiKey, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const parsed = (await answer.json()) as any;
    if (!answer.ok) throw new Error(`${answer.status}: ${JSON.stringify(parsed)}`);
    return parsed;
  };
  const opened = await request('POST', '', { environment, split, index, parse: 'tool_call', max_turns: calls.length + 1 });
  const results: Seen[] = [];
  for (const { tool, input } of calls) {
    const step = await request('POST', `/${opened.id}/step`, {
      text: `I call it. <tool_call>\n${JSON.stringify({ name: tool, arguments: input })}\n</tool_call>`,
    });
    const content = String(step.observations[0]?.content ?? '');
    const inner = /^<tool_response>\n([\s\S]*)\n<\/tool_response>$/.exec(content)?.[1] ?? content;
    // SkyRL has no null: a call without reward is 0 (docs/reference/skyrl.md#openreward-integration).
    results.push({ text: inner, reward: step.reward === 0 ? null : step.reward, finished: step.done });
  }
  await request('DELETE', `/${opened.id}`);
  const last = opened.prompt.at(-1);
  return { prompt: String(last.content), tools: opened.tools.map(({ name }: { name: string }) => name), results };
};

export const clients: Record<string, ClientOfDialect> = { ors, openenv, mcp, text };
