import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { Engine } from '../engine/engine.ts';
import { exec } from './exec.ts';

test('a command waits for an engine that restarts', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'palestra-exec-'));
  const socketPath = path.join(folder, 'engine.sock');
  const server = http.createServer((_request, response) => response.writeHead(404).end('{"message":"no such container"}'));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true });
  });
  const engine = new Engine({ host: `unix://${socketPath}` });
  const running = exec(engine, 'sandbox', { command: ['true'], timeoutMs: 1_000, maxBytes: 1 }, AbortSignal.timeout(20_000));
  running.catch(() => {});
  await sleep(500);
  server.listen(socketPath);
  await once(server, 'listening');
  // The answer of the engine, for which there is no such sandbox.
  await expect(running).rejects.toMatchObject({ code: 'sandbox_lost' });
});
