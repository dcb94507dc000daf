import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open, readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { portOrFree } from '@palestra/hosting';
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
/** Sessions of a playground need no long wait for their end. */
const DRAIN_S = '2';

/**
 * The service of the variables (`OPENREWARD_API_KEY`, ...), else a running one with its data in `.palestra` of the folder or the working
 * directory, else a new one there, without the demo and the bundled environments.
 */
export async function findOrStartService(folder: string, signal: AbortSignal): Promise<DevService> {
  signal.throwIfAborted();
  const settings = readSettings(process.env);
  if (settings.apiKey !== '') {
    if (await responds(settings.url, '/health'))
      return { url: settings.url, apiKey: settings.apiKey, started: false, stop: async () => {} };
    throw new UsageError(`${settings.url} does not respond. Start the service, or unset OPENREWARD_API_KEY to use one of this folder.`);
  }
  for (const dataDir of new Set([path.join(folder, '.palestra'), path.resolve('.palestra')])) {
    const found = await readAccess(dataDir);
    if (found !== null && (await isReady(found))) return { ...found, started: false, stop: async () => {} };
  }
  const dataDir = path.join(folder, '.palestra');
  return startService(dataDir, signal).catch(async (error: unknown) => {
    const [, pid] = (error instanceof ServiceError && IN_USE.exec(error.message)) || [];
    if (pid === undefined) throw error;
    // An `env dev` that was killed leaves a service that ends by itself.
    process.stderr.write(`Waiting for the end of process ${pid}, which uses ${dataDir} ...\n`);
    await untilGone(Number(pid), signal);
    return startService(dataDir, signal);
  });
}

class ServiceError extends Error {}
const IN_USE = /another Palestra \(pid (\d+)\) uses this data directory/;

/** Resolves when the process has ended, or after the longest time that a service needs to stop. */
async function untilGone(pid: number, signal: AbortSignal): Promise<void> {
  for (const deadline = Date.now() + STOP_GRACE_MS; Date.now() < deadline;) {
    try {
      process.kill(pid, 0);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ESRCH') return;
    }
    await sleep(100, undefined, { signal });
  }
}

async function startService(dataDir: string, signal: AbortSignal): Promise<DevService> {
  const main = serverMain();
  process.stderr.write('Starting Palestra ...\n');
  await mkdir(dataDir, { recursive: true });
  const log = path.join(dataDir, 'service.log');
  const output = await open(log, 'w', 0o600);
  const port = await portOrFree(DEFAULT_PORT);
  const child = spawn(process.execPath, ['--max-semi-space-size=32', main, '--exit-with-parent'], {
    env: {
      ...process.env,
      // Those of another program must not receive the tables of this one.
      DATABASE_URL: undefined,
      S3_BUCKET: undefined,
      PALESTRA_DATA_DIR: dataDir,
      PALESTRA_DEMO: '0',
      PALESTRA_BUNDLED_ENVIRONMENTS: '0',
      PALESTRA_DRAIN_S: process.env['PALESTRA_DRAIN_S'] ?? DRAIN_S,
      HOST: '127.0.0.1',
      PORT: String(port),
    },
    // A terminal's Ctrl-C is for this process, which then stops the service.
    detached: true,
    stdio: ['pipe', 'pipe', output.fd],
  });
  await output.close();
  child.stdin!.on('error', () => {});
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
    throw new ServiceError(`The service did not start: ${lines.slice(-5).join('\n')}\nSee ${log}.`);
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

/** Whether a service is there and accepts the key (another one may have taken the port), and is not about to stop. */
const isReady = async ({ url, apiKey }: { url: string; apiKey: string }): Promise<boolean> =>
  (await responds(url, '/health/ready')) && responds(url, '/v1/me', { 'x-api-key': apiKey });

async function responds(url: string, route: string, headers: Record<string, string> = {}): Promise<boolean> {
  const answer = await fetch(new URL(route, url), { headers, signal: AbortSignal.timeout(5_000) }).catch(() => null);
  await answer?.body?.cancel();
  return answer?.ok ?? false;
}
