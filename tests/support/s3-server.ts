import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { freePort } from '@palestra/hosting';

/** A separate real S3 server (versitygw) with one empty bucket. It can stop and return at the same address with its objects. */
export interface S3Server {
  /** Environment variables of a service that uses it. */
  env: Record<'S3_ENDPOINT' | 'S3_BUCKET' | 'S3_REGION' | 'S3_ACCESS_KEY_ID' | 'S3_SECRET_ACCESS_KEY', string>;
  /** Accepts connections without answering from now on. */
  freeze(): void;
  /** `kill -9`: connections are refused. */
  kill(): Promise<void>;
  /** Restarts it after `kill`. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

const BUCKET = 'palestra';
const ACCESS_KEY = 'testkey';
const SECRET_KEY = 'testsecret12';

/** `.ci/run` builds it and sets PALESTRA_TEST_S3_SERVER. Throws if it is missing, because a skipped proof is a failure. */
function binary(): string {
  const file = process.env['PALESTRA_TEST_S3_SERVER'] ?? path.resolve(import.meta.dirname, '../../.cache/bin/versitygw');
  if (!existsSync(file)) throw new Error(`PALESTRA_TEST_S3_SERVER must name the versitygw program; looked at ${file}`);
  return file;
}

async function waitForHealth(url: string, child: ChildProcess): Promise<void> {
  for (const deadline = Date.now() + 30_000; Date.now() < deadline;) {
    if (child.exitCode !== null) throw new Error(`the S3 server ended with ${child.exitCode}`);
    const answer = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(1_000) }).catch(() => null);
    if (answer?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error('the S3 server did not become healthy within 30 s');
}

export async function startS3(): Promise<S3Server> {
  const file = binary();
  const folder = await mkdtemp(path.join(tmpdir(), 'palestra-s3-'));
  const [data, iam] = [path.join(folder, 'data'), path.join(folder, 'iam')];
  // A folder below the root is a bucket.
  await mkdir(path.join(data, BUCKET), { recursive: true });
  await mkdir(iam);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  let child: ChildProcess;
  const restart = async () => {
    child = spawn(file, ['--port', `127.0.0.1:${port}`, '--health', '/healthz', '--quiet', '--iam-dir', iam, 'posix', data], {
      stdio: 'ignore',
      env: { ...process.env, ROOT_ACCESS_KEY: ACCESS_KEY, ROOT_SECRET_KEY: SECRET_KEY },
    });
    await waitForHealth(url, child);
  };
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  };
  await restart();
  return {
    env: {
      S3_ENDPOINT: url,
      S3_BUCKET: BUCKET,
      S3_REGION: 'us-east-1',
      S3_ACCESS_KEY_ID: ACCESS_KEY,
      S3_SECRET_ACCESS_KEY: SECRET_KEY,
    },
    freeze: () => void child.kill('SIGSTOP'),
    kill,
    restart,
    stop: async () => {
      await kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
