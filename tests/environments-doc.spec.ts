import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';

/** Runs every TypeScript snippet of docs/environments.md; each asserts what the text says. */
const root = path.resolve(import.meta.dirname, '..');
const text = readFileSync(path.join(root, 'docs/environments.md'), 'utf8');
const snippets = [...text.matchAll(/^```ts\n\/\/ (\S+\.ts)\n([^]*?)^```$/gm)].map(([, name, code]) => ({ name: name!, code: code! }));
const folder = path.join(root, '.cache', `snippets-${process.pid}`);

/** An OpenAI-compatible service that finds every answer good. */
const service = http.createServer((request, response) => {
  let body = '';
  request.on('data', (data: Buffer) => (body += data.toString()));
  request.on('end', () => {
    const marker = /SCORE (\w+):/.exec(body)![1];
    response.end(JSON.stringify({ choices: [{ message: { content: `Good.\nSCORE ${marker}: 1` } }] }));
  });
});

beforeAll(async () => {
  service.listen(0, '127.0.0.1');
  await once(service, 'listening');
  vi.stubEnv('JUDGE_URL', `http://127.0.0.1:${(service.address() as AddressInfo).port}/v1`);
  mkdirSync(folder, { recursive: true });
  for (const { name, code } of snippets) writeFileSync(path.join(folder, name), code);
});
afterAll(() => {
  vi.unstubAllEnvs();
  service.close().closeAllConnections();
  rmSync(folder, { recursive: true, force: true });
});

test('every snippet has a name, so that none is left out', () => {
  expect(snippets.length).toBe(text.match(/^```ts$/gm)!.length);
  expect(snippets.length).toBeGreaterThanOrEqual(6);
});

test.each(snippets)('$name runs', async ({ name }) => {
  await expect(import(/* @vite-ignore */ path.join(folder, name))).resolves.toBeDefined();
});
