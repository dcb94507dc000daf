import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { UsageError } from '../settings.ts';

const SERVER = fileURLToPath(new URL('../../../api/dist/main.js', import.meta.url));

/** Runs the server in the foreground, forwards signals to it, and exits with its status. */
export async function up(): Promise<void> {
  if (!existsSync(SERVER)) throw new UsageError('The server is not built. Run `npm run build`.');
  const server = spawn(process.execPath, [SERVER], { stdio: 'inherit' });
  const forward = (signal: NodeJS.Signals) => void server.kill(signal);
  process.on('SIGINT', forward).on('SIGTERM', forward).on('SIGHUP', forward);
  const [code] = (await once(server, 'exit')) as [number | null];
  process.exitCode = code ?? 1;
}
