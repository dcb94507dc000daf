import { describe, expect, test } from 'vitest';
import { ShardedRows, shardName } from '../index.ts';
import { each } from './rollout-files.fixture.ts';

describe('shards', () => {
  const positioned = (count: number) => each(Array.from({ length: count }, (_, k) => ({ row: k, cursor: k })));

  test('cut by rows and by bytes; the cursor after a shard is where the next one starts', async () => {
    const rows = new ShardedRows(positioned(10), null as number | null);
    const shards: number[][] = [];
    const cursors: (number | null)[] = [];
    while (!(await rows.isDone())) {
      const taken: number[] = [];
      for await (const row of rows.shard({ rows: 4, bytes: 30 }, () => (shards.length === 1 ? taken.length * 15 : 0))) taken.push(row);
      shards.push(taken);
      cursors.push(rows.cursor);
    }
    expect(shards).toEqual([
      [0, 1, 2, 3],
      [4, 5],
      [6, 7, 8, 9],
    ]);
    expect(cursors).toEqual([3, 5, 9]);
    expect(shardName(2, 5, 'parquet')).toBe('data/train-00002-of-00005.parquet');
  });
});
