import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { freePort } from '@palestra/hosting';
import { type RunningServer, serve } from '@palestra/environment-kit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { addRemote, type Palestra, startPalestra } from '../support/palestra.ts';
import { hostileEnvironment, hostileSchemas, parquetBombs, toolCallEvents } from './bombs.fixture.ts';

/** Requirement 4 of the audit: while one client attacks, the service answers another one, and its memory stays. */

interface Seen {
  requests: number;
  failed: number;
  blockedMs: number;
  slowestMs: number;
  rssMb: number;
}

/** What another client sees of the process `pid` at `url` while `attack` runs. */
async function watched(url: string, pid: number, attack: () => Promise<unknown>): Promise<Seen> {
  const watch = spawn(process.execPath, [path.join(import.meta.dirname, 'health-watch.fixture.mjs'), url, String(pid)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let text = '';
  watch.stdout.on('data', (data: Buffer) => (text += data.toString()));
  const closed = once(watch, 'close');
  try {
    await once(watch.stdout, 'data');
    await attack();
  } finally {
    watch.stdin.end();
    await closed;
  }
  return JSON.parse(text.slice('ready'.length)) as Seen;
}

describe.skipIf(process.platform !== 'linux')('another client', () => {
  test('notices a service that is frozen', async () => {
    const port = await freePort();
    const program = `require('node:http').createServer((request, reply) => {
      const begun = process.cpuUsage();
      const computedMs = ({ user, system }) => (user + system) / 1000;
      if (request.url === '/freeze') while (computedMs(process.cpuUsage(begun)) < 2000);
      reply.end('ok');
    }).listen(${port}, '127.0.0.1', () => process.stdout.write('ready'))`;
    const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
    try {
      await once(child.stdout, 'data');
      const seen = await watched(`http://127.0.0.1:${port}/health`, child.pid!, () => fetch(`http://127.0.0.1:${port}/freeze`));
      expect(seen.blockedMs).toBeGreaterThan(1_000);
    } finally {
      child.kill('SIGKILL');
    }
  });

  describe('is served', () => {
    let palestra: Palestra;
    let upstream: RunningServer;
    let environment: string;
    let idleMb: number;
    const key = () => ({ 'x-api-key': palestra.apiKey });
    const post = (url: string, body: BodyInit, headers: Record<string, string> = {}) =>
      fetch(palestra.url + url, { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } });
    const health = () => `${palestra.url}/health`;

    beforeAll(async () => {
      palestra = await startPalestra();
      upstream = await serve([hostileEnvironment('hostile')]);
      environment = await addRemote(palestra, 'hostile', upstream.url, true);
      for (const [name, { args }] of Object.entries(hostileSchemas)) {
        const events = toolCallEvents(environment, `freeze-${name}`, name, args);
        const stored = await post('/v1/rollouts', JSON.stringify({ events }), key());
        if (!stored.ok) throw new Error(await stored.text());
        // Derived before anything is measured.
        await fetch(`${palestra.url}/v1/runs/freeze-${name}/tools`, { headers: key() });
      }
      // Without an attack, as long as one of them takes.
      const idle = await watched(health(), palestra.pid(), () => new Promise((resolve) => setTimeout(resolve, 2_000)));
      idleMb = idle.rssMb;
    });
    afterAll(async () => {
      await palestra?.stop();
      await upstream?.close();
    });

    const NONE = { failed: 0, blockedMs: 'below 1 s', grownMb: 'below 300 MB' };
    /** What an attack costs others; figures only where they are too high. */
    async function harm(attack: () => Promise<unknown>): Promise<Record<keyof typeof NONE, unknown>> {
      const { failed, blockedMs, rssMb } = await watched(health(), palestra.pid(), attack);
      const grownMb = rssMb - idleMb;
      return { failed, blockedMs: blockedMs < 1_000 ? NONE.blockedMs : blockedMs, grownMb: grownMb < 300 ? NONE.grownMb : grownMb };
    }

    test('while gzip bombs arrive without a key', async () => {
      const bomb = gzipSync(`[${'[],'.repeat(20_000_000)}[]]`);
      const routes = ['/v1/login', '/v1/rollouts', '/create_session', '/mcp/palestra/echo'];
      const send = (route: string) => post(route, bomb, { 'content-encoding': 'gzip' }).then((answer) => answer.text());
      expect(await harm(() => Promise.all(routes.map(send)))).toEqual(NONE);
    });

    test('while deep JSON arrives with a key', async () => {
      const deep = '['.repeat(400_000);
      const bodies = [
        ['/v1/keys', `{"name": ${deep}`],
        ['/create', `{"task_spec": ${deep}`],
        ['/v1/rollouts', `{"events": ${deep}${']'.repeat(400_000)}}`],
      ] as const;
      const send = ([route, body]: (typeof bodies)[number]) =>
        post(route, body, { ...key(), 'x-session-id': 's' }).then((answer) => answer.text());
      expect(await harm(() => Promise.all(bodies.map(send)))).toEqual(NONE);
    });

    test('while calls are checked against hostile schemas', async () => {
      const check = (name: string) =>
        fetch(`${palestra.url}/v1/runs/freeze-${name}/tools/check?tool=${name}`, { headers: key() }).then((answer) => answer.status);
      const attack = async () => expect(new Set(await Promise.all(Object.keys(hostileSchemas).map(check)))).toEqual(new Set([200, 422]));
      expect(await harm(attack)).toEqual(NONE);
    });

    test('while hostile Parquet files are uploaded', async () => {
      const files = Object.values(parquetBombs).map((bomb) => bomb());
      const base = `${palestra.url}/v1/environments/${environment}/task-sets`;
      const upload = async (file: Uint8Array) => {
        const set = (await (await fetch(base, { method: 'POST', headers: key() })).json()) as { id: string };
        const url = `${base}/${set.id}/splits/train?format=parquet`;
        const headers = { ...key(), 'content-type': 'application/octet-stream' };
        const answer = await fetch(url, { method: 'PUT', headers, body: file as Uint8Array<ArrayBuffer> });
        return answer.status;
      };
      // Four uploads of one organisation at a time.
      const attack = async () => {
        expect(new Set(await Promise.all(files.slice(0, 4).map(upload)))).toEqual(new Set([422]));
        expect(await Promise.all(files.slice(4).map(upload))).toEqual([422]);
      };
      expect(await harm(attack)).toEqual(NONE);
    });

    test('while a large file is uploaded', async () => {
      const found = await fetch(`${palestra.url}/v1/environments/${environment}`, { headers: key() });
      const { id } = (await found.json()) as { id: string };
      const body = JSON.stringify({ environmentId: id, files: [{ fileName: 'zeros', contentType: 'application/octet-stream' }] });
      const { urls } = (await (await post('/v1/files/upload-urls', body, key())).json()) as { urls: { uploadUrl: string }[] };
      const zeros = new Uint8Array(8 * 1024 * 1024);
      let sent = 0;
      const stream = new ReadableStream({
        pull(controller) {
          controller.enqueue(zeros);
          if ((sent += 1) === 50) controller.close();
        },
      });
      const headers = { 'content-type': 'application/octet-stream', 'content-encoding': 'gzip' };
      const attack = async () => {
        const answer = await fetch(urls[0]!.uploadUrl, { method: 'PUT', body: stream, headers, duplex: 'half' } as RequestInit);
        expect(await answer.json()).toEqual({ size: 50 * zeros.length });
      };
      expect(await harm(attack)).toEqual(NONE);
    });
  });
});
