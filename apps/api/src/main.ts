import '@palestra/kit/node-version';
import path from 'node:path';
import { announcement } from './announcement.ts';
import { ConfigError, readConfig } from './platform/config.ts';
import { limitHeapGrowth } from './platform/gc-tuning.ts';
import { exitOnSecondInterrupt } from './platform/shutdown.ts';
import { startServer } from './server.ts';

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
  // `palestra env dev` holds the other end of standard input. It closes also when that process is killed.
  if (process.argv.includes('--exit-with-parent')) process.stdin.on('end', stop).on('error', stop).resume();
  const server = await startServer(config);
  // stdout is for people and for scripts that copy the export lines; logs go to stderr.
  process.stdout.write(await announcement(server, config.dataDir, process.stdout.isTTY));
  if (config.demo && config.bundledEnvironments && !stopping.signal.aborted)
    await server.playDemo().catch((error: Error) => process.stderr.write(`palestra: the demo did not start: ${error.message}\n`));
  if (!stopping.signal.aborted) await new Promise((resolve) => stopping.signal.addEventListener('abort', resolve, { once: true }));
  process.stdout.write('Stopping ...\n');
  exitOnSecondInterrupt();
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
