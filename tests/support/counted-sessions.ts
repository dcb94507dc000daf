import { expect } from 'vitest';
import { z } from 'zod';
import { defineEnvironment, tool } from '@palestra/environment-kit';
import type { SessionCallView, SessionView } from '@palestra/protocol';
import { type SseEvent, SseParser } from '@palestra/kit/sse';
import type { TestServer } from './server.ts';

/** Releases calls of `wait`, and counts how often it ran. */
export const gate = { open: () => {}, runs: 0 };

/** Counts its calls. `wait` blocks, so that a test can act while a call runs. */
export const counter = defineEnvironment<{ start: number }, { value: number }>({
  name: 'counter',
  splits: ['train'],
  tasks: () => [{ start: 0 }, { start: 10 }],
  prompt: () => 'Count.',
  create: ({ task }) => ({ value: task.start }),
  tools: {
    add: tool<z.ZodObject<{ by: z.ZodNumber }>, { start: number }, { value: number }>({
      description: 'Adds.',
      input: z.object({ by: z.number() }),
      run: ({ by }, session) => {
        session.state.value += by;
        return { content: `now ${session.state.value}`, reward: by };
      },
    }),
    boom: { description: 'Raises.', run: () => Promise.reject(new Error('the tool broke')) },
    wait: {
      description: 'Waits.',
      run: () => {
        gate.runs += 1;
        return new Promise<string>((resolve) => (gate.open = () => resolve('waited')));
      },
    },
    long: { description: 'Talks.', run: () => 'x'.repeat(100_000) },
  },
});

/** Reads an event stream until `enough` returns true or the stream ends. */
export async function follow(
  server: TestServer,
  sid: string,
  enough: (events: (SseEvent & { id: string })[]) => boolean,
  options: { from?: string; query?: string } = {},
) {
  const { from, query = '' } = options;
  const gone = new AbortController();
  const timer = setTimeout(() => gone.abort(new Error('no such event within 40 s')), 40_000);
  const events: (SseEvent & { id: string })[] = [];
  const headers = { 'x-api-key': server.apiKey, ...(from === undefined ? {} : { 'last-event-id': from }) };
  const answer = await fetch(`${server.url}/v1/sessions/${sid}/events${query}`, { headers, signal: gone.signal });
  expect(answer.headers.get('content-type')).toContain('text/event-stream');
  const parser = new SseParser();
  // Bytes come in any pieces.
  const decoder = new TextDecoder();
  let text = '';
  try {
    for await (const bytes of answer.body!) {
      const piece = decoder.decode(bytes, { stream: true });
      text += piece;
      const ids = [...text.matchAll(/^id: (.*?)\r$/gm)].map(([, id]) => id!);
      for (const event of parser.push(piece)) events.push({ ...event, id: ids[events.length]! });
      if (enough(events)) break;
    }
  } finally {
    clearTimeout(timer);
    gone.abort();
  }
  return {
    events,
    parsed: events.map(({ event, data }) => ({ event, value: JSON.parse(data) as Partial<Omit<SessionView, 'state'> & SessionCallView> })),
  };
}
