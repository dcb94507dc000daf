import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open, readFile } from 'node:fs/promises';
import path from 'node:path';
import { freePort } from '@palestra/hosting';
import { readSettings, UsageError } from '../../server-settings.ts';
import { serverMain } from '../../server-main.ts';

/** The Palestra service that shows the environment. */
export interface DevService {
  url: string;
  apiKey: string;
  /** Whether this command started it. */
  started: boolean;
  /** Ends it if this command started it. */
  stop(): Promise<void>;
}

const DEFAULT_PORT = 8080;
const START_TIMEOUT_MS = 120_000;
const STOP_GRACE_MS = 20_000;
const SIGN_IN_FILE = 'sign-in.txt';

/**
 * The service of the variables (`OPENREWARD_API_KEY`, ...), else a running one with its data in `.palestra` of the folder or the working
 * directory, else a new one there, without the demo and the bundled environments.
 */
export async function findOrStartService(folder: string, signal: AbortSignal): Promise<DevService> {
  signal.throwIfAborted();
  const settings = readSettings(process.env);
  if (settings.apiKey !== '') {
    if (await isAlive(settings.url)) return { url: settings.url, apiKey: settings.apiKey, started: false, stop: async () => {} };
    throw new UsageError(`${settings.url} does not respond. Start the service, or unset OPENREWARD_API_KEY to use one of this folder.`);
  }
  for (const dataDir of new Set([path.join(folder, '.palestra'), path.resolve('.palestra')])) {
    const found = await readAccess(dataDir);
    if (found !== null && (await isAlive(found.url, found.apiKey))) return { ...found, started: false, stop: async () => {} };
  }
  return startService(path.join(folder, '.palestra'), signal);
}

async function startService(dataDir: string, signal: AbortSignal): Promise<DevService> {
  const main = serverMain();
  process.stderr.write('Starting Palestra ...\n');
  await mkdir(dataDir, { recursive: true });
  const log = path.join(dataDir, 'service.log');
  const output = await open(log, 'w', 0o600);
  const port = (await isFree(DEFAULT_PORT)) ? DEFAULT_PORT : await freePort('127.0.0.1');
  const child = spawn(process.execPath, ['--max-semi-space-size=32', main], {
    env: {
      ...process.env,
      // Those of another program must not receive the tables of this one.
      DATABASE_URL: undefined,
      S3_BUCKET: undefined,
      PALESTRA_DATA_DIR: dataDir,
      PALESTRA_DEMO: '0',
      PALESTRA_BUNDLED_ENVIRONMENTS: '0',
      HOST: '127.0.0.1',
      PORT: String(port),
    },
    // A terminal's Ctrl-C is for this process, which then stops the service.
    detached: true,
    stdio: ['ignore', 'pipe', output.fd],
  });
  await output.close();
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    const kill = setTimeout(() => child.kill('SIGKILL'), STOP_GRACE_MS);
    await exited;
    clearTimeout(kill);
  };
  try {
    await untilReady(child.stdout!, once(child, 'exit'), log, signal);
    const access = await readAccess(dataDir);
    if (access === null) throw new Error(`${path.join(dataDir, SIGN_IN_FILE)} has no API key.`);
    return { ...access, started: true, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function untilReady(stdout: NodeJS.ReadableStream, exited: Promise<unknown>, log: string, signal: AbortSignal): Promise<void> {
  let text = '';
  const ready = new Promise<void>((resolve) => {
    stdout.on('data', (data: Buffer) => {
      text = (text + data.toString()).slice(-10_000);
      if (text.includes('Palestra is ready')) resolve();
    });
  });
  const ended = exited.then(async () => {
    const lines = (await readFile(log, 'utf8').catch(() => '')).trim().split('\n');
    throw new Error(`The service did not start: ${lines.slice(-5).join('\n')}\nSee ${log}.`);
  });
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(START_TIMEOUT_MS)]);
  deadline.throwIfAborted();
  const late = new Promise<never>((_, reject) => {
    deadline.addEventListener('abort', () => reject(deadline.reason as Error), { once: true });
  });
  await Promise.race([ready, ended, late]);
}

/** URL and key of the file that a service without a terminal writes. */
async function readAccess(dataDir: string): Promise<{ url: string; apiKey: string } | null> {
  const text = await readFile(path.join(dataDir, SIGN_IN_FILE), 'utf8').catch(() => '');
  const url = /OPENREWARD_URL=(\S+)/.exec(text)?.[1];
  const apiKey = /OPENREWARD_API_KEY=(\S+)/.exec(text)?.[1];
  return url === undefined || apiKey === undefined ? null : { url, apiKey };
}

/** Whether a service responds and, if a key is passed, accepts it: another service may have taken the port. */
async function isAlive(url: string, apiKey?: string): Promise<boolean> {
  const [route, headers] = apiKey === undefined ? ['/health', {}] : ['/v1/me', { 'x-api-key': apiKey }];
  const answer = await fetch(new URL(route, url), { headers, signal: AbortSignal.timeout(5_000) }).catch(() => null);
  await answer?.body?.cancel();
  return answer?.ok ?? false;
}

/** Whether nothing listens on a port of this machine. */
async function isFree(port: number): Promise<boolean> {
  const { createServer } = await import('node:net');
  const probe = createServer();
  return new Promise((resolve) => {
    probe.once('error', () => resolve(false));
    probe.listen({ host: '127.0.0.1', port }, () => probe.close(() => resolve(true)));
  });
}

/** The wanted port if it is free, else any free one. */
export const portOrFree = async (wanted: number): Promise<number> => ((await isFree(wanted)) ? wanted : freePort('127.0.0.1'));
