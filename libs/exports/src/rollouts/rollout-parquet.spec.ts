import { parquetMetadataAsync, parquetReadObjects } from 'hyparquet';
import { describe, expect, test } from 'vitest';
import type { ExportedRollout } from './exported-rollout.ts';
import { narrowFile, rolloutFile } from '../index.ts';
import { EXPORT_COLUMNS } from './narrow-columns.ts';
import { arrayBufferOf, bytesOf, compressors, each, message, options, rollout, write } from './rollout-files.fixture.ts';

describe('Parquet', () => {
  test('holds every column, messages as a list of structs, zstd, and where it comes from', async () => {
    const empty = rollout(1, { messages: [], flags: [], reward: null, step: null, task_spec: null });
    const file = arrayBufferOf(await bytesOf(write([rollout(0), empty], 'parquet')));
    const metadata = await parquetMetadataAsync(file);
    expect(metadata.key_value_metadata).toEqual([{ key: 'query', value: 'reward:>0' }]);
    const columns = metadata.row_groups.flatMap((group) => group.columns);
    expect(new Set(columns.map((each) => each.meta_data?.codec))).toEqual(new Set(['ZSTD']));
    const [first, second] = await parquetReadObjects({ file, compressors });
    expect(Object.keys(first!)).toEqual([...EXPORT_COLUMNS.map(({ name }) => name), 'messages']);
    expect(first).toMatchObject({
      task_index: 7n,
      group_key: '-9007199254740993',
      reward: 0.5,
      flags: ['stamped_turn'],
      step_prov: 'inferred',
    });
    expect(first!['received_at']).toEqual(new Date(1_700_000_001_000));
    expect(first!['messages'][4]).toMatchObject({ index: 4, name: 'accuse', call_id: 'c1', metadata: '{"big": 12345678901234567890}' });
    expect(second).toMatchObject({ messages: [], flags: [], reward: null, step: null, task_spec: null });
  });

  test('narrow rows only, and a file without any', async () => {
    const rows = await parquetReadObjects({ file: arrayBufferOf(await bytesOf(narrowFile(each([rollout(0)]), options()))), compressors });
    expect(Object.keys(rows[0]!)).toEqual(EXPORT_COLUMNS.map(({ name }) => name));
    const none = await parquetMetadataAsync(arrayBufferOf(await bytesOf(narrowFile(each([]), options()))));
    expect(none.num_rows).toBe(0n);
  });

  test('asks for rows only as far as its reader has come', async () => {
    let asked = 0;
    async function* endless(): AsyncGenerator<ExportedRollout> {
      for (;;) yield rollout((asked += 1), { messages: [message(0, 'user_message', 'x'.repeat(500_000))] });
    }
    const file = rolloutFile(endless(), 'parquet', options());
    await file.next();
    const afterOne = asked;
    expect(afterOne).toBe(8);
    await file.next();
    expect(asked).toBe(2 * afterOne);
    await file.return(undefined);
  });
});
