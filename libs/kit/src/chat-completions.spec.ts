import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { chatUrl, postChat, retryChat } from './chat-completions.ts';

const KEY = 'sk-of-the-test';
let server: http.Server;
let url: string;
let answer: (request: http.IncomingMessage, response: http.ServerResponse) => void;

beforeAll(async () => {
  server = http.createServer((request, response) => void request.resume().on('end', () => answer(request, response)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = chatUrl(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/`);
});
afterAll(() => void server.close());

const { signal } = new AbortController();
const post = (more: object = {}) => postChat({ url, apiKey: KEY, body: {}, timeoutMs: 30_000, signal, ...more });

test('an address of a model has a scheme and no credentials', () => {
  expect(chatUrl('https://models.example/v1/')).toBe('https://models.example/v1/chat/completions');
  expect(() => chatUrl('localhost:8000/v1')).toThrow('must begin with http:// or https://');
  expect(() => chatUrl('http://user:key@localhost:8000/v1')).toThrow('must not contain credentials');
});

test('the key that a service repeats is in no text', async () => {
  answer = (request, response) => response.end(`you sent ${request.headers.authorization}`);
  expect(await post()).toBe('you sent Bearer [API key]');
  answer = (_, response) => response.writeHead(401).end(`wrong key ${KEY}`);
  await expect(post()).rejects.toMatchObject({ status: 401, retryable: false, detail: 'wrong key [API key]' });
  answer = (_, response) => response.writeHead(401).end('x'.repeat(50_000));
  await expect(post()).rejects.toMatchObject({ status: 401, detail: '' });
});

test('a reply is read up to its limit, and no redirect is followed', async () => {
  answer = (_, response) => response.end('ä'.repeat(500));
  expect(await post({ maxBytes: 1_000 })).toBe('ä'.repeat(500));
  await expect(post({ maxBytes: 999 })).rejects.toMatchObject({ status: null, retryable: false });
  answer = (_, response) => response.writeHead(307, { location: 'http://127.0.0.1:9/' }).end();
  await expect(post()).rejects.toThrow('fetch failed');
});

test('what may succeed later is repeated, and nothing else', async () => {
  let requests = 0;
  answer = (_, response) => {
    requests += 1;
    if (requests === 1) return void response.writeHead(429, { 'retry-after': '0' }).end();
    if (requests === 2) return void response.writeHead(503).end();
    if (requests === 3) return void response.destroy();
    response.end('well');
  };
  expect(await retryChat(() => post(), { retries: 3, minDelayMs: 1, signal })).toBe('well');
  requests = 0;
  await expect(retryChat(() => post(), { retries: 1, minDelayMs: 1, signal })).rejects.toMatchObject({ status: 503 });
  expect(requests).toBe(2);
  requests = 0;
  answer = (_, response) => response.writeHead((requests += 1) > 0 ? 400 : 200).end();
  await expect(retryChat(() => post(), { retries: 3, minDelayMs: 1, signal })).rejects.toMatchObject({ status: 400 });
  expect(requests).toBe(1);
});
