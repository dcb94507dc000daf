import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { ContentBlock } from '@modelcontextprotocol/sdk/types.js';
import { defineEnvironment, imageBlock, tool, z } from '@palestra/environment-kit';
import { onTestFinished } from 'vitest';

const PIXEL = 'iVBORw0KGgo=';

/** Results for MCP clients: text, images, rewards, refusals and slow calls. */
export const gallery = defineEnvironment<{ id: number; broken?: boolean }, { looked: number }>({
  name: 'gallery',
  splits: ['test', 'train', 'validation'],
  tasks: (split) => (split === 'validation' ? [{ id: 0, broken: true }] : Array.from({ length: 5 }, (_, id) => ({ id }))),
  create: () => ({ looked: 0 }),
  setup: ({ task }) => {
    if (task.broken) throw new Error('the roof leaks');
  },
  prompt: ({ task }) => [
    { type: 'text', text: `Picture ${task.id}:`, detail: null },
    imageBlock(PIXEL, 'image/png'),
    { type: 'text', text: 'Say what it shows.', detail: null },
  ],
  tools: {
    look: tool({
      description: 'Looks again',
      input: z.object({ at: z.number().optional() }),
      run: ({ at = 0 }, { state }) => {
        state.looked += 1;
        return {
          content: [{ type: 'text', text: `look ${state.looked} at ${at}`, detail: null }, imageBlock(PIXEL, 'image/png')],
          metadata: { structured_content: { looked: state.looked } },
        };
      },
    }),
    say: tool({
      description: 'Says what it shows; ends the episode',
      input: z.object({ answer: z.string() }),
      run: ({ answer }) => ({ content: 'heard', reward: answer === 'a pixel' ? 1 : 0.25, finished: true }),
    }),
    paint: tool({
      description: 'A picture of so many bytes',
      input: z.object({ bytes: z.int() }),
      run: ({ bytes }) => imageBlock(Buffer.alloc(bytes), 'image/png'),
    }),
    raise: tool({
      description: 'Raises',
      run: () => {
        throw new Error('the lamp fell');
      },
    }),
    doze: tool({
      description: 'Takes its time',
      input: z.object({ ms: z.number() }),
      run: ({ ms }) => new Promise<string>((resolve) => setTimeout(() => resolve('awake'), ms).unref()),
    }),
  },
});

export interface McpPlayer {
  client: Client;
  transport: StreamableHTTPClientTransport;
  sid: string;
  /** The result of `initialize`, which the SDK's client does not expose. */
  initialized: { _meta: Record<string, unknown>; instructions: string };
  call(tool: string, input?: Record<string, unknown>): Promise<Result>;
}

export interface Result {
  content: ContentBlock[];
  text: string;
  isError: boolean;
  structuredContent?: unknown;
  reward: unknown;
  finished: unknown;
  meta: Record<string, unknown>;
}

/** The official client, connected; closed with its test. */
export async function connectMcp(url: string, headers: Record<string, string>): Promise<McpPlayer> {
  const client = new Client({ name: 'palestra-tests', version: '1.0.0' });
  let initialized: McpPlayer['initialized'] | null = null;
  const overheard: typeof fetch = async (input, init) => {
    const answer = await fetch(input, init);
    if (initialized !== null || !String(init?.body).includes('"initialize"') || !answer.ok) return answer;
    initialized = ((await answer.clone().json()) as { result: McpPlayer['initialized'] }).result;
    return answer;
  };
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers }, fetch: overheard });
  // The SDK's own type of the interface is stricter about undefined than its class.
  await client.connect(transport as never);
  onTestFinished(() => client.close());
  return {
    client,
    transport,
    sid: transport.sessionId!,
    initialized: initialized!,
    async call(name, input = {}) {
      const result = await client.callTool({ name, arguments: input });
      const content = result.content as ContentBlock[];
      const meta = result._meta ?? {};
      return {
        content,
        text: content.map((block) => (block.type === 'text' ? block.text : `[${block.type}]`)).join('\n'),
        isError: result.isError === true,
        structuredContent: result.structuredContent,
        reward: meta['palestra/reward'],
        finished: meta['palestra/finished'],
        meta,
      };
    },
  };
}
