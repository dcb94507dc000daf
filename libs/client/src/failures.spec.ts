import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import path from 'node:path';
import { errorCatalogue } from '@palestra/protocol';
import { expect, onTestFinished, test } from 'vitest';
import { Connection } from './connection.ts';
import { classifyResponse } from './failures.ts';
import { Session } from './session.ts';
import { json, startTestServer } from './test-server.fixture.ts';

/** An entry of the table that the Python package shares. */
interface SharedFailure {
  name: string;
  when: {
    network?: 'refused' | 'reset' | 'cut' | 'stalled' | 'not_json';
    status?: number;
    code?: string | null;
    call?: object;
    event?: 'error' | 'failure';
    data?: unknown;
  };
  class: string;
  retried: boolean;
  advice: string;
}
const fixture = path.resolve(import.meta.dirname, '../../../tests/fixtures/client-failures.json');
const { failures } = JSON.parse(readFileSync(fixture, 'utf8')) as { failures: SharedFailure[] };
const retry = { retries: 1, minDelayMs: 1, maxDelayMs: 1 };

async function connectionTo(respond: (response: ServerResponse, path: string) => void): Promise<Connection> {
  const connection = new Connection({ url: await startTestServer((url, _body, response) => respond(response, url)) });
  onTestFinished(() => connection.close());
  return connection;
}

function respondWith({ network, status, code }: SharedFailure['when'], response: ServerResponse): void {
  if (network === 'stalled') return;
  if (network === 'reset') return void response.destroy();
  if (network === 'cut') response.writeHead(200, { 'content-length': 100 }).write('{"a"', () => response.destroy());
  else if (network === 'not_json') response.end('<html>');
  else if (code === null) response.writeHead(status!).end('<h1>An error</h1>');
  else json(response, { statusCode: status, code, message: 'x', detail: 'x' }, status);
}

const requests = failures.filter(({ when }) => when.call === undefined && when.event === undefined);
test.each(requests)('a request: $name', async ({ when, class: failureClass, retried, advice }) => {
  let count = 0;
  const connection = await connectionTo((response) => {
    count += 1;
    respondWith(when, response);
  });
  const refused = new Connection({ url: 'http://127.0.0.1:1' });
  // Only this one needs the deadline: others would have another failure on a busy machine.
  const deadlineMs = when.network === 'stalled' ? 1_000 : 30_000;
  const request = (when.network === 'refused' ? refused : connection).json({ path: '/v1/me', retry, deadlineMs });
  const code = when.code ?? undefined;
  await expect(request).rejects.toMatchObject({ failureClass, retryable: retried, advice, ...(code && { code }) });
  if (when.network !== 'refused') expect(count).toBe(retried ? 2 : 1);
});

const calls = failures.filter(({ when }) => when.call !== undefined || when.event !== undefined);
test.each(calls)('a call: $name', async ({ when, class: failureClass, retried, advice }) => {
  let count = 0;
  const connection = await connectionTo((response, url) => {
    if (url !== '/call') return void json(response, {});
    count += 1;
    const { call, event = 'end', data } = when;
    const text = call !== undefined ? JSON.stringify(call) : typeof data === 'string' ? data : JSON.stringify(data);
    response.end(`event: task_id\r\ndata: t\r\n\r\nevent: ${event}\r\ndata: ${text}\r\n\r\n`);
  });
  const session = Session.attach(connection, 's', { pingIntervalMs: 0 });
  await expect(session.call('look')).rejects.toMatchObject({ failureClass, retryable: retried, advice });
  expect(count).toBe(1);
});

test('every code of the catalogue is retried if the catalogue says so', () => {
  for (const [code, { status, retryable }] of Object.entries(errorCatalogue))
    expect([code, classifyResponse(status, code).retryable]).toEqual([code, retryable]);
});

test('every code of the table is in the catalogue, with the same status', () => {
  expect(failures.length).toBeGreaterThan(40);
  const known = Object.fromEntries(Object.entries(errorCatalogue).map(([code, { status }]) => [code, status]));
  const named = requests.filter(({ when }) => typeof when.code === 'string' && when.code !== 'moon_not_found');
  for (const { when } of named) expect([when.code, known[when.code!]]).toEqual([when.code, when.status]);
});
