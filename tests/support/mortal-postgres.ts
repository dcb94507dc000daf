import { readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { freePort } from '@palestra/hosting';
import { PostgresServer } from '../../apps/api/src/platform/database/postgres-server.ts';

export interface MortalPostgres {
  url: string;
  /**
   * Kills the postmaster with `kill -9` and starts it after `awayMs` on the same data, which recovers from its log. Returns the downtime
   * in milliseconds.
   */
  crash(awayMs?: number): Promise<number>;
  /** Suspends all of its processes, so that they neither answer nor close connections. Returns a function that resumes them. */
  freeze(): () => void;
  stop(): Promise<void>;
}

async function startPatiently(server: PostgresServer): Promise<void> {
  for (const deadline = Date.now() + 30_000; ;) {
    try {
      return await server.start();
    } catch (error) {
      // The children of a killed postmaster exit with a delay.
      if (Date.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

/** A separate real PostgreSQL that can be killed and returns at the same address. */
export async function startMortalPostgres(): Promise<MortalPostgres> {
  const folder = await mkdtemp(path.join(tmpdir(), 'palestra-mortal-'));
  const databaseDir = path.join(folder, 'data');
  const server = new PostgresServer({
    databaseDir,
    choosePort: freePort,
    password: 'test',
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync'],
    // With fsync, unlike the shared server, because crash safety is tested.
    postgresFlags: ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories=', '-c', 'max_connections=200'],
  });
  await server.initialise();
  await server.start();
  return {
    url: `postgresql://postgres:test@127.0.0.1:${server.port}/postgres`,
    async crash(awayMs = 0) {
      const startedAt = Date.now();
      const pid = Number((await readFile(path.join(databaseDir, 'postmaster.pid'), 'utf8')).split('\n')[0]);
      process.kill(pid, 'SIGKILL');
      await new Promise((resolve) => setTimeout(resolve, awayMs));
      await startPatiently(server);
      return Date.now() - startedAt;
    },
    freeze() {
      const pid = server.pid!;
      const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number);
      const signal = (name: NodeJS.Signals) => {
        for (const member of [pid, ...children]) {
          try {
            process.kill(member, name);
          } catch {
            // The connection has ended.
          }
        }
      };
      signal('SIGSTOP');
      return () => signal('SIGCONT');
    },
    async stop() {
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
