import { afterAll, beforeAll, expect, test } from 'vitest';
import { LakeService } from '../../../apps/api/src/exports/lake.service.ts';
import { ExportMessages } from '../../../apps/api/src/exports/rollout-export.messages.ts';
import { postpone, startStore, type StoreWorld } from '../store/sealing.world.ts';

let world: StoreWorld;
beforeAll(async () => {
  world = await startStore('files');
  await postpone(world.server, 'lake');
});
afterAll(() => world?.server.close());

test('a run whose transcript is lost keeps no other from the lake', async () => {
  const { database, config } = world.server;
  const lost = await world.upload(2, { runName: 'lost' });
  await world.seal();
  const kept = await world.upload(2, { runName: 'kept' });
  await world.seal();
  await world.blobs.delete((await world.packOf(lost))!);
  const messages = new ExportMessages(world.services().reader, world.blobs);
  const lake = new LakeService(database, messages, world.blobs, { ...config, lake: 'messages' });
  await expect(lake.write(AbortSignal.timeout(30_000))).rejects.toThrow();
  const { rows } = await database.pool.query('SELECT run_seq FROM lake_parts');
  expect(rows).toEqual([{ run_seq: (await world.head(kept)).run_seq }]);
});
