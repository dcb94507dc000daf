import type { InstanceSpec, Provider } from '@palestra/hosting';
import { pino } from 'pino';
import type pg from 'pg';
import { expect, test } from 'vitest';
import type { InstanceLogs } from './instance-logs.ts';
import { InstanceWork } from './instance-work.ts';
import type { StoredInstance } from './instance.sql.ts';

const row = (id: string, state: StoredInstance['state']) => ({ id, state, provider: 'kubernetes', version_id: 'v' }) as StoredInstance;

test('instances that cannot be removed keep no other from starting', async () => {
  const started: string[] = [];
  const provider = {
    // As of pods whose node is lost: they are there until somebody deletes the node.
    remove: (_id: string, _graceMs: number, signal: AbortSignal) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
    ensure: async ({ id }: InstanceSpec) => {
      started.push(id);
      return { endpoint: null, state: 'starting' };
    },
  } as unknown as Provider;
  const work = new InstanceWork({
    pool: {} as pg.Pool,
    logger: pino({ level: 'silent' }),
    logs: {} as InstanceLogs,
    provider: () => provider,
    spec: async (id) => ({ id }) as InstanceSpec,
    fetch: () => fetch,
    onChange: () => {},
    onReady: () => {},
  });
  for (let count = 0; count < 100; count += 1) work.remove(row(`lost-${count}`, 'stopped'));
  work.ensure(row('new', 'starting'));
  await expect.poll(() => started).toEqual(['new']);
  await work.stop();
});
