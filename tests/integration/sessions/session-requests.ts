import { SseParser, type SseEvent } from '@palestra/kit/sse';
import { expect } from 'vitest';
import type { Replica } from './sessions.world.ts';

/** What a client of the session plane sends, and reads, without a client library. */
export const encode = (secrets: object) => Buffer.from(JSON.stringify(secrets)).toString('base64');

export async function ask(
  { url }: { url: string },
  method: string,
  path: string,
  options: { sid?: string; body?: unknown; headers?: object; key?: string } = {},
) {
  const response = await fetch(url + path, {
    method,
    headers: {
      'content-type': 'application/json',
      'x-api-key': options.key ?? 'alice',
      'x-deployment': 'acme/math',
      ...(options.sid === undefined ? {} : { 'x-session-id': options.sid }),
      ...options.headers,
    },
    ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
  });
  return { status: response.status, text: await response.text(), headers: response.headers };
}

export const events = (text: string): SseEvent[] => new SseParser().push(text);
export const sidOf = (text: string) => events(text)[0]!.data;

export async function open(replica: Replica, headers: object = {}, variant?: string): Promise<string> {
  const sid = sidOf((await ask(replica, 'POST', '/create_session', { body: {}, headers })).text);
  expect(
    await ask(replica, 'POST', '/create', {
      sid,
      headers,
      body: { split: 'train', index: 0, ...(variant !== undefined && { env_name: variant }) },
    }),
  ).toMatchObject({ status: 200 });
  return sid;
}

export async function call(replica: Replica, sid: string, tool: string, input: object = {}, taskId?: string) {
  const body = { name: tool, input, ...(taskId === undefined ? {} : { task_id: taskId }) };
  const { status, text } = await ask(replica, 'POST', '/call', { sid, body });
  const all = events(text);
  const json = all
    .filter(({ event }) => event === 'chunk' || event === 'end')
    .map(({ data }) => data)
    .join('');
  return {
    status,
    taskId: all.find(({ event }) => event === 'task_id')?.data ?? null,
    error: status === 200 ? (all.find(({ event }) => event === 'error')?.data ?? null) : (JSON.parse(text) as { code: string }).code,
    said: json === '' ? null : ((JSON.parse(json) as { output?: { blocks: { text: string }[] } }).output?.blocks[0]?.text ?? null),
  };
}

export async function until<T>(look: () => Promise<T>, good: (value: T) => boolean, limitMs = 20_000): Promise<T> {
  for (const deadline = Date.now() + limitMs; ;) {
    const value = await look();
    if (good(value)) return value;
    if (Date.now() > deadline) throw new Error(`did not happen within ${limitMs} ms: ${JSON.stringify(value)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
