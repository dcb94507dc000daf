import { expect, test } from 'vitest';
import { selectPartitions, selectToday } from '../../../apps/api/src/store/storage/partition.sql.ts';
import { startServer } from '../../support/server.ts';

test('a service without jobs has a partition for the messages of today before its first upload', async () => {
  const server = await startServer({ jobs: 'off' });
  try {
    const { pool } = server.database;
    await pool.query('SELECT FROM rollout_messages LIMIT 1');
    expect(await selectPartitions(pool)).toContain(await selectToday(pool));
  } finally {
    await server.close();
  }
});
