import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { announcement } from '../../apps/api/src/announcement.ts';
import { signIn } from '../support/organisation.ts';
import { startPalestra } from '../support/palestra.ts';
import type { TestServer } from '../support/server.ts';

/** Finding M10 of the audit: the first key and an owner's link do not reach logs. And of M6: a weak first key does not guard a network. */

const folder = mkdtempSync(path.join(tmpdir(), 'palestra-first-key-'));
chmodSync(folder, 0o755);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('M10: the log has neither the key nor the link; a file that only its owner can read has both', { timeout: 240_000 }, async () => {
  const apiKey = 'or_Kq7Vw2Xz9Bn4Jd6Ys8Lm3Tc5Rf1Hg0Pk';
  const file = path.join(folder, 'sign-in.txt');
  // A file that everybody reads, left by somebody, lends its mode to nothing.
  writeFileSync(file, 'old', { mode: 0o644 });
  const palestra = await startPalestra({ dataDir: folder, env: { PALESTRA_API_KEY: apiKey, PALESTRA_LOG_LEVEL: 'debug' } });
  try {
    await expect.poll(() => palestra.output()).toContain(`are in ${file}\n`);
    expect(palestra.output()).not.toMatch(/\/login\?token=|or_Kq7/);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const written = readFileSync(file, 'utf8');
    expect(written).toContain(`export OPENREWARD_API_KEY=${apiKey}\n`);
    expect(await signIn(/http:\S+\/login\?token=\S+/.exec(written)![0])).toMatch(/^palestra_session=./);
  } finally {
    await palestra.stop();
  }
});

describe('M10: the message after the start', () => {
  const server = { url: 'http://127.0.0.1:1', apiKey: 'or_secret', signInUrl: 'http://127.0.0.1:1/login?token=secret' } as TestServer;

  test('is complete on a terminal', async () => {
    expect(await announcement(server, folder, true)).toMatch(/API_KEY=or_secret\n[^]*\/login\?token=secret\n/);
  });

  test('has no secret if the file cannot be written', async () => {
    expect(await announcement(server, path.join(folder, 'sign-in.txt/none'), false)).toMatch(/ready[^]*could not be written/);
    expect(await announcement(server, path.join(folder, 'sign-in.txt/none'), false)).not.toContain('secret');
  });

  test('does not follow a symbolic link in its place', async () => {
    const target = path.join(folder, 'public');
    writeFileSync(target, '');
    const data = mkdtempSync(path.join(folder, 'linked-'));
    symlinkSync(target, path.join(data, 'sign-in.txt'));
    await announcement(server, data, false);
    expect(readFileSync(target, 'utf8')).toBe('');
    expect(readFileSync(path.join(data, 'sign-in.txt'), 'utf8')).toContain('or_secret');
  });
});

test.each(['12345678', 'changeme-changeme-changeme-changeme'])('M6: the first key of a network service must not be %s', async (key) => {
  const main = path.resolve(import.meta.dirname, '../../apps/api/dist/main.js');
  const child = spawn(process.execPath, [main], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      NODE_OPTIONS: '',
      HOST: '0.0.0.0',
      PORT: '0',
      PALESTRA_DATA_DIR: path.join(folder, 'none'),
      PALESTRA_API_KEY: key,
    },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data: Buffer) => (output += data.toString()));
  // Its output is complete only then.
  const [code] = (await once(child, 'close')) as [number | null];
  expect(code).toBe(1);
  expect(output).toMatch(/palestra: PALESTRA_API_KEY: expected [^\n]+openssl rand[^\n]+\n$/);
});
