import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Page } from 'playwright-core';
import type * as Client from '@palestra/client';
import { build, type Rollup } from 'vite';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type Palestra, startPalestra } from '../support/palestra.ts';
import { launch } from './browser.ts';

/** The built client, bundled for browsers, in a page of another origin than the service. */
const library = path.resolve(import.meta.dirname, '../../libs/client');
const MAX_GZIP_BYTES = 40_000;
declare global {
  interface Window {
    palestra: typeof Client;
    client: Client.PalestraClient;
  }
}

let bundle: string;
let origin: Server;
let palestra: Palestra;

async function bundled(): Promise<string> {
  const result = await build({
    configFile: false,
    logLevel: 'warn',
    root: library,
    // The conditions of Vite for a page: the built files, for browsers.
    resolve: { conditions: ['browser', 'module', 'import', 'default'] },
    build: { write: false, minify: true, lib: { entry: path.join(library, 'dist/index.js'), formats: ['es'], fileName: 'client' } },
  });
  const { output } = [result].flat()[0] as Rollup.RollupOutput;
  expect(output).toHaveLength(1);
  expect(output[0].imports).toEqual([]);
  return output[0].code;
}

function servePages(): Server {
  return createServer((request, response) => {
    if (request.url === '/client.js') response.writeHead(200, { 'content-type': 'text/javascript' }).end(bundle);
    else
      response
        .writeHead(200, { 'content-type': 'text/html' })
        .end('<script type="module">import * as palestra from "/client.js"; window.palestra = palestra;</script>');
  }).listen(0, '127.0.0.1');
}
const originOf = (server: Server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

beforeAll(async () => {
  bundle = await bundled();
  origin = servePages();
  await new Promise((resolve) => origin.once('listening', resolve));
  palestra = await startPalestra({ env: { PALESTRA_ALLOWED_ORIGINS: originOf(origin), PALESTRA_BUNDLED_ENVIRONMENTS: '1' } });
});
afterAll(async () => {
  origin?.close();
  await palestra?.stop();
});

/** A page of the origin with a client, whose key is `apiKey`. */
async function openClient(from: Server = origin, apiKey = palestra.apiKey): Promise<Page> {
  const context = await (await launch()).newContext();
  onTestFinished(() => context.close());
  const page = await context.newPage();
  await page.goto(originOf(from));
  await page.waitForFunction(() => window.palestra !== undefined);
  await page.evaluate(
    ([url, key]) => {
      window.client = new window.palestra.PalestraClient({ url: url!, apiKey: key!, uploads: { maxAgeMs: 5 } });
    },
    [palestra.url, apiKey],
  );
  return page;
}

test('the bundle is small and imports nothing of Node', () => {
  expect(gzipSync(bundle).length).toBeLessThan(MAX_GZIP_BYTES);
  expect(bundle).not.toMatch(/["']node:|require\(|\bBuffer\b|\bprocess\./);
  // The package has a transport for Node, too: the test is blind if bundles take that one.
  expect(readFileSync(path.join(library, 'dist/transport.node.js'), 'utf8')).toContain('undici');
  expect(bundle).not.toContain('undici');
});

describe('in a page', () => {
  test('plays an episode: tools, results of calls, its end', async () => {
    const page = await openClient();
    const played = await page.evaluate(async () => {
      const positions: unknown[] = [];
      const options = { environment: 'palestra/echo', split: 'train', index: 3, secrets: { token: 'ü' } };
      const session = await window.client.session({ ...options, onQueue: (position) => positions.push(position) });
      const prompt = await session.prompt();
      const { tools } = await session.taskTools();
      const short = await session.call('echo', { text: 'hello' });
      const long = await session.call('echo', { text: '💥'.repeat(20_000) });
      const refused = await session.call('nothing').catch((error: Client.ToolCallError) => [error.name, error.failureClass, error.reason]);
      await session.close();
      const late = await session.call('echo', { text: 'late' }).catch((error: Error) => error.name);
      const state = await window.client.sessions.get(session.sid);
      const calls = [];
      for await (const call of window.client.sessions.calls(session.sid)) calls.push(call.tool);
      return { prompt, tools: tools.map(({ name }) => name), short, long: long.blocks, refused, late, state: state.state, calls };
    });
    expect(played).toMatchObject({
      prompt: [{ text: 'Task 3: call echo with any text.' }],
      tools: ['echo'],
      short: { blocks: [{ text: 'hello' }], reward: 0.1, finished: false },
      long: [{ text: '💥'.repeat(20_000) }],
      refused: ['ToolCallError', 'policy', 'not_found'],
      late: 'SessionTerminatedError',
      state: 'closed',
      calls: ['echo', 'echo', 'nothing'],
    });
  });

  test('uploads rollouts and reads an export of them', async () => {
    const page = await openClient();
    const seen = await page.evaluate(async () => {
      const { client } = window;
      for (let number = 0; number < 3; number += 1) {
        const rollout = await client.rollouts.start({ runName: 'in a page', step: 0 });
        for (const content of ['ä', '💥', 'c']) await rollout.log({ type: 'assistant_message', content, reward: 1 });
      }
      const report = await client.rollouts.flush();
      const { id } = await client.rolloutExports.create({ run: 'in a page', format: 'jsonl' });
      let view = await client.rolloutExports.get(id);
      while (view.state === 'pending' || view.state === 'running') {
        await new Promise((resolve) => setTimeout(resolve, 50));
        view = await client.rolloutExports.get(id);
      }
      const file = view.files.find(({ name }) => name.startsWith('data/'))!;
      const decoder = new TextDecoder();
      let text = '';
      for await (const bytes of await client.rolloutExports.download(id, file.name)) text += decoder.decode(bytes, { stream: true });
      const listed = (await client.rolloutExports.list()).map((each) => each.id);
      return { report, isListed: listed.includes(id), lines: text.trim().split('\n').length, hasText: text.includes('💥') };
    });
    expect(seen).toEqual({ report: { stored: 12, unsent: 0, error: null }, isListed: true, lines: 3, hasText: true });
  });

  test('uploads a file of tasks', async () => {
    const page = await openClient();
    const pushed = await page.evaluate(async () => {
      const { client } = window;
      const { name: namespace } = (await client.me()).org;
      await client.environments.add({ name: 'of-a-page', namespace, server: { kind: 'bundled', name: 'echo' } });
      const lines = ['{"id": 1}', '{"id": 2}'].join('\n');
      const file = { split: 'train', format: 'jsonl' as const, name: 'tasks.jsonl', open: () => new Blob([lines]) };
      await client.taskSets.push(`${namespace}/of-a-page`, [file]);
      return (await client.taskSets.list(`${namespace}/of-a-page`)).length;
    });
    expect(pushed).toBe(1);
  });

  test('errors are typed, and an abort is the reason of the caller', async () => {
    const page = await openClient();
    const errors = await page.evaluate(async () => {
      const { client, palestra: library } = window;
      const kindOf = (error: Client.PalestraApiError) => [error.name, error.code, error.failureClass, error.retryable];
      const task = { split: 'train', index: 0 };
      const missing = await client.session({ environment: 'palestra/nothing', ...task }).catch(kindOf);
      const wrong = new library.PalestraClient({ url: client.url, apiKey: 'or_wrong' });
      const unauthorized = await wrong.me().catch(kindOf);
      const abort = new AbortController();
      const opened = client
        .session({ environment: 'palestra/bench', ...task, signal: abort.signal })
        .catch((error: Error) => error.message);
      abort.abort(new Error('the user left'));
      return { missing, unauthorized, aborted: await opened };
    });
    expect(errors).toEqual({
      missing: ['PalestraApiError', 'deployment_not_found', 'infrastructure', false],
      unauthorized: ['PalestraApiError', 'unauthorized', 'infrastructure', false],
      aborted: 'the user left',
    });
  });
});

test('a page of an origin that is not allowed learns what is missing, and nothing else', async () => {
  const other = servePages();
  await new Promise((resolve) => other.once('listening', resolve));
  onTestFinished(() => void other.close());
  const page = await openClient(other);
  const error = await page.evaluate(() =>
    window.client.keys.create('x').catch((thrown: Client.ConnectionError) => [thrown.name, thrown.failureClass, thrown.message]),
  );
  expect(error).toEqual(['ConnectionError', 'infrastructure', expect.stringContaining('PALESTRA_ALLOWED_ORIGINS')]);
});
