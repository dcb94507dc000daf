import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';

/** Runs the service in the foreground, with the options of `npm start`. */
export const up = (): Promise<void> => run('@palestra/api/main', ['--max-semi-space-size=32']);

/** Runs background jobs without the service (docs/adr/0015-worker-role.md). */
export const worker = (): Promise<void> => run('@palestra/worker/main');

/** Applies the migrations of the database and ends, for services whose role may not change the schema. */
export const migrate = (): Promise<void> => run('@palestra/api/migrate');

/** Runs a program of the installation, forwards signals to it, and exits with its status. */
async function run(program: string, nodeOptions: string[] = []): Promise<void> {
  const main = createRequire(import.meta.url).resolve(program);
  const child = spawn(process.execPath, [...nodeOptions, main], { stdio: 'inherit' });
  const forward = (signal: NodeJS.Signals) => void child.kill(signal);
  process.on('SIGINT', forward).on('SIGTERM', forward).on('SIGHUP', forward);
  const [code] = (await once(child, 'exit')) as [number | null];
  process.exitCode = code ?? 1;
}
