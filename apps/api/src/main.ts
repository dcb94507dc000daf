import { spawn } from 'node:child_process';
import path from 'node:path';
import { announcement } from './announcement.ts';
import { ConfigError, readConfig } from './platform/config.ts';
import { limitHeapGrowth } from './platform/gc-tuning.ts';
import { type RunningServer, startServer } from './server.ts';

const CLI = path.resolve(import.meta.dirname, '../../cli/dist/main.js');

/** Records a short demo run, so that the first page of a new user shows real rollouts. Returns a function that stops it. */
function playDemo({ url, apiKey }: RunningServer, onEnd: () => void): () => void {
  const demo = spawn(process.execPath, [CLI, 'demo'], {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, OPENREWARD_URL: url, OPENREWARD_API_URL: url, OPENREWARD_SESSION_URL: url, OPENREWARD_API_KEY: apiKey },
  });
  demo.on('error', (error) => process.stderr.write(`palestra: the demo did not start: ${error.message}\n`));
  demo.on('exit', onEnd);
  return () => void demo.kill();
}

async function main(): Promise<void> {
  limitHeapGrowth();
  const config = readConfig(process.env, (file) => path.resolve(process.env.INIT_CWD ?? process.cwd(), file));
  process.stdout.write('Starting Palestra ...\n');
  const stopping = new AbortController();
  // A signal during the start takes effect when the start is complete.
  const stop = () => stopping.abort();
  // After SIGHUP the terminal is closed, and writes to it fail.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop);
  const server = await startServer(config);
  // stdout is for people and for scripts that copy the export lines; logs go to stderr.
  process.stdout.write(await announcement(server, config.dataDir, process.stdout.isTTY));
  let stopDemo = () => {};
  if (config.demo && server.fresh && config.bundledEnvironments) stopDemo = playDemo(server, () => (stopDemo = () => {}));
  if (!stopping.signal.aborted) await new Promise((resolve) => stopping.signal.addEventListener('abort', resolve, { once: true }));
  process.stdout.write('Stopping ...\n');
  // A second signal ends the process at once.
  process.once('SIGINT', () => process.exit(130));
  stopDemo();
  await server.close();
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    const { message, stack } = error as Error;
    const expected =
      error instanceof ConfigError ||
      ['PortTakenError', 'DatabaseUnreachableError', 'RevokedKeyError', 'EmbeddedPostgresError', 'MigrationError'].includes(
        (error as Error).constructor.name,
      );
    process.stderr.write(`palestra: ${expected || !stack ? message : stack}\n`);
    process.exit(1);
  },
);
