import { setTimeout as sleep } from 'node:timers/promises';
import { type PoolSpec, type Provider, HostingError } from '@palestra/hosting';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import type { InstanceFacts, VersionDemand } from './decide.ts';
import { wantedPools, WarmPoolWork } from './warm-pool-work.ts';

const demand = (id: string, pool: number | null) => ({ id, orgId: 'o', max: 4, pool }) as VersionDemand;

test('a pool has what the settings want, as far as the maximum and the organisation leave room', () => {
  const versions = [demand('v1', 2), demand('v2', 3), demand('v3', null)];
  const running = (count: number) => Array.from({ length: count }, () => ({ versionId: 'v1', orgId: 'o' }) as InstanceFacts);
  const pools = (count: number, ceiling: number) => Object.fromEntries(wantedPools(versions, running(count), ceiling));
  expect(pools(0, 100)).toEqual({ v1: 2, v2: 3 });
  expect(pools(3, 100)).toEqual({ v1: 1, v2: 3 });
  expect(pools(5, 100)).toEqual({ v1: 0, v2: 3 });
  expect(pools(1, 4)).toEqual({ v1: 2, v2: 1 });
  expect(pools(1, 1)).toEqual({ v1: 0, v2: 0 });
});

test('pools of an engine become the wanted ones, and one that fails does not hold up the others', async () => {
  const has = new Map([['old', 1]]);
  const provider = {
    name: 'kubernetes',
    warmPools: {
      list: async () => [...has.keys()],
      keep: async ({ versionId }: PoolSpec, replicas: number) => void has.set(versionId, replicas),
      remove: async (versionId: string) => void has.delete(versionId),
    },
  } as unknown as Provider;
  const poolSpec = async (versionId: string) => {
    if (versionId === 'broken') throw new HostingError('hosting_unsupported', 'It cannot run here.');
    return versionId === 'deleted' ? null : ({ versionId } as PoolSpec);
  };
  const work = new WarmPoolWork({ logger: pino({ level: 'silent' }), poolSpec });
  const wanted = new Map([
    ['broken', 1],
    ['deleted', 1],
    ['new', 2],
  ]);
  work.keep(provider, wanted, 1_000);
  await expect.poll(() => [...has]).toEqual([['new', 2]]);
  // Somebody changed it; it is not asked at every pass.
  has.set('new', 5);
  work.keep(provider, wanted, 2_000);
  await sleep(20);
  expect(has.get('new')).toBe(5);
  work.keep(provider, wanted, 7_000);
  await expect.poll(() => has.get('new')).toBe(2);
  work.keep(provider, new Map(), 7_100);
  await expect.poll(() => has.size).toBe(0);
  await work.stop();
});
