import type { TaskFileFormat } from '@palestra/protocol';
import { parquetMetadata, parquetReadObjects } from 'hyparquet';
import { describe, expect, test } from 'vitest';
import type { RowFormat } from './row-formats.ts';
import { type TaskFailure, taskFile, type TaskSource } from './task-rows.ts';
import type { TaskFilter } from './task-selection.ts';

const text = (content: string) => ({ type: 'text' as const, text: content, detail: null });

/** Later tasks answer sooner; a task `failing` fails; `most` counts what runs at the same time. Equal indexes have equal contents. */
function sourceOf(counts: Record<string, number>, failing: number | null = null): TaskSource & { most: number } {
  let open = 0;
  return {
    most: 0,
    splits: async () => [{ name: 'train' }],
    numTasks: async (environment, split) => {
      const count = counts[`${environment}:${split}`] ?? counts[environment];
      if (count === undefined) throw new Error(`404: ${environment} is unknown`);
      return count;
    },
    specs: async (_environment, _split, start, stop) => Array.from({ length: stop - start }, (_, offset) => ({ id: start + offset })),
    difficulty: async () =>
      new Map([
        [1, { avg_reward: 0, num_rollouts: 9 }],
        [2, { avg_reward: 0.5, num_rollouts: 2 }],
        [5, { avg_reward: 0.75, num_rollouts: 4 }],
        [6, { avg_reward: 1, num_rollouts: 4 }],
      ]),
    async readTask(environment, _split, index) {
      open += 1;
      this.most = Math.max(this.most, open);
      for (let turn = index % 7; turn < 7; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      open -= 1;
      if (index === failing) throw new Error('setup exploded');
      const blocks = [text(`tâche ${environment} ${index}`)];
      return { prompt: blocks, messages: [{ role: 'user', blocks, detail: null }], tools: [], spec: { id: index }, version: 1 };
    },
  };
}

interface Written {
  bytes: Buffer;
  total: number;
  written: number;
  failures: TaskFailure[];
}

interface Options {
  source: TaskSource;
  environments?: string[];
  format?: RowFormat;
  file?: TaskFileFormat;
  filter?: Partial<TaskFilter>;
  signal?: AbortSignal;
}

async function write({ source, environments = ['a/b'], format = 'trl', file = 'jsonl', filter, signal }: Options): Promise<Written> {
  const written: Written = { bytes: Buffer.alloc(0), total: -1, written: 0, failures: [] };
  const pieces: Uint8Array[] = [];
  const bytes = taskFile({
    source,
    environments,
    split: 'train',
    format,
    file,
    filter: { exclude: [], excludeKeys: [], ...filter },
    concurrency: 4,
    signal: signal ?? new AbortController().signal,
    onTotal: (total) => (written.total = total),
    onRow: () => (written.written += 1),
    onFailure: (failure) => written.failures.push(failure),
  });
  for await (const piece of bytes) pieces.push(piece);
  return { ...written, bytes: Buffer.concat(pieces) };
}

const rowsOf = ({ bytes }: Written) =>
  bytes
    .toString()
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, any>);
const placesOf = (written: Written) => rowsOf(written).map((row) => `${row['env_name']} ${row['task_index']}`);
const indicesOf = (written: Written) => rowsOf(written).map((row) => row['task_index'] as number);
const tableOf = (bytes: Buffer) => bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer;

describe('Parquet', () => {
  test('columns, types, codec, row groups and values of SkyRL’s script', async () => {
    const { bytes } = await write({ source: sourceOf({ 'a/b': 2_500 }), format: 'skyrl-script', file: 'parquet' });
    const file = tableOf(bytes);
    const metadata = parquetMetadata(file);
    expect(metadata.schema.slice(1).map(({ name, type, repetition_type }) => [name, type, repetition_type])).toEqual([
      ['prompt', 'BYTE_ARRAY', 'OPTIONAL'],
      ['env_class', 'BYTE_ARRAY', 'OPTIONAL'],
      ['env_name', 'BYTE_ARRAY', 'OPTIONAL'],
      ['split', 'BYTE_ARRAY', 'OPTIONAL'],
      ['task_index', 'INT64', 'OPTIONAL'],
    ]);
    expect(metadata.row_groups.map((group) => Number(group.num_rows))).toEqual([1000, 1000, 500]);
    expect(new Set(metadata.row_groups.flatMap((group) => group.columns.map((column) => column.meta_data?.codec)))).toEqual(
      new Set(['SNAPPY']),
    );
    const rows = await parquetReadObjects({ file });
    expect(rows).toHaveLength(2_500);
    expect(rows[2_400]).toMatchObject({ env_class: 'openreward', env_name: 'a/b', split: 'train', task_index: 2400n });
    expect(rows[2_400]!['prompt']).toContain(String.raw`{"role": "user", "content": "t\u00e2che a/b 2400"}]`);
  });

  test('nested columns: lists of messages, structs in structs, booleans, nulls', async () => {
    const { bytes } = await write({ source: sourceOf({ 'a/b': 3 }), format: 'verl', file: 'parquet' });
    const rows = await parquetReadObjects({ file: tableOf(bytes) });
    expect(rows[2]).toMatchObject({
      prompt: [{ role: 'user', content: 'tâche a/b 2' }],
      reward_model: { style: 'rule', ground_truth: '' },
      extra_info: { index: 2n, split: 'train', need_tools_kwargs: false },
      env_version: 1n,
    });
    const nested = await write({ source: sourceOf({ 'a/b': 7 }), format: 'slime', file: 'parquet', filter: { minReward: 0 } });
    const [, second] = await parquetReadObjects({ file: tableOf(nested.bytes) });
    expect(second!['metadata']).toMatchObject({ palestra: { task_index: 2n, avg_reward: 0.5, num_rollouts: 2n } });
  });

  test('no rows at all is still a table', async () => {
    const { bytes } = await write({ source: sourceOf({ 'a/b': 0 }), file: 'parquet' });
    expect(await parquetReadObjects({ file: tableOf(bytes) })).toEqual([]);
  });
});

test('JSON lines of SkyRL’s script have its keys in its order', async () => {
  const { bytes } = await write({ source: sourceOf({ 'a/b': 2 }), format: 'skyrl-script' });
  const lines = bytes.toString().trimEnd().split('\n');
  expect(lines[1]).toMatch(
    /^\{"prompt": "\[\{.*\}\]", "env_class": "openreward", "env_name": "a\/b", "split": "train", "task_index": 1\}$/,
  );
});

describe('rows of tasks', () => {
  test('keep their order, are read in parallel within the bound, and failures are reported', async () => {
    const source = sourceOf({ 'a/b': 20, 'c/d': 2 }, 3);
    const written = await write({ source, environments: ['a/b', 'no/such', 'c/d'], filter: { maxTasks: 8 } });
    expect(written).toMatchObject({ total: 10, written: 9 });
    expect(placesOf(written)).toEqual([...[0, 1, 2, 4, 5, 6, 7].map((index) => `a/b ${index}`), 'c/d 0', 'c/d 1']);
    expect(written.failures).toEqual([
      { environment: 'no/such', task_index: null, reason: '404: no/such is unknown' },
      { environment: 'a/b', task_index: 3, reason: 'setup exploded' },
    ]);
    expect(source.most).toBe(4);
  });

  test('an abort ends them', async () => {
    const abort = new AbortController();
    const source = sourceOf({ 'a/b': 50 });
    const written = write({
      source: {
        ...source,
        async readTask(...request) {
          if (request[2] === 9) abort.abort(new Error('enough'));
          return source.readTask(...request);
        },
      },
      signal: abort.signal,
    });
    await expect(written).rejects.toThrow('enough');
  });
});

describe('filters', () => {
  const source = sourceOf({ 'a/b': 8, 'a/b:test': 3, 'c/d': 8 });

  test.each([
    [{ minReward: 0.5 }, [2, 5, 6]],
    [{ maxReward: 0.5 }, [1, 2]],
    [{ minReward: 0.1, maxReward: 0.9 }, [2, 5]],
    [{ minRollouts: 4 }, [1, 5, 6]],
    [{ minReward: 0.1, maxReward: 0.9, minRollouts: 3 }, [5]],
  ])('by reward: %o', async (filter, expected) => {
    const written = await write({ source, filter });
    expect(indicesOf(written)).toEqual(expected);
    expect(written.total).toBe(expected.length);
  });

  test('tasks with the content of an evaluation set are left out, before the maximum applies', async () => {
    const written = await write({ source, filter: { exclude: [{ environment: 'a/b', split: 'test' }], maxTasks: 4 } });
    expect(indicesOf(written)).toEqual([3, 4, 5, 6]);
    const keys = rowsOf(written).map((row) => row['task_key'] as string);
    const rest = await write({ source, filter: { exclude: [{ environment: 'a/b', split: 'test' }], excludeKeys: keys } });
    expect(indicesOf(rest)).toEqual([7]);
    expect(rest.total).toBe(1);
  });

  test('a split to exclude that cannot be read ends the export', async () => {
    const written = write({ source, filter: { exclude: [{ environment: 'no/such', split: 'test' }] } });
    await expect(written).rejects.toThrow('no/such is unknown');
  });

  test('a seed shuffles the tasks of all environments, always alike', async () => {
    const environments = ['a/b', 'c/d'];
    const shuffled = placesOf(await write({ source, environments, filter: { shuffleSeed: 7 } }));
    expect(shuffled.toSorted()).toEqual(placesOf(await write({ source, environments })).toSorted());
    expect(shuffled).toEqual(placesOf(await write({ source, environments, filter: { shuffleSeed: 7 } })));
    expect(shuffled).not.toEqual(placesOf(await write({ source, environments, filter: { shuffleSeed: 8 } })));
    expect(new Set(shuffled.slice(0, 8).map((place) => place.split(' ')[0]))).toEqual(new Set(environments));
    // A sample, not the first two.
    const few = indicesOf(await write({ source: sourceOf({ 'a/b': 1_000 }), filter: { shuffleSeed: 7, maxTasks: 5 } }));
    expect(new Set(few).size).toBe(5);
    expect(Math.max(...few)).toBeGreaterThan(4);
  });

  test('an environment with too many tasks fails with the limit', async () => {
    const written = await write({ source: sourceOf({ 'a/b': 1_000_001 }) });
    expect(written.failures).toMatchObject([{ task_index: null, reason: expect.stringContaining('at most 1000000') }]);
    expect((await write({ source: sourceOf({ 'a/b': 1_000_001 }), filter: { maxTasks: 2 } })).written).toBe(2);
  });
});
