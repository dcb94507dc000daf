import { parquetMetadata, parquetReadObjects } from 'hyparquet';
import { describe, expect, test } from 'vitest';
import { type PromptFormat, taskFile } from './task-file.ts';
import { type TaskFailure, taskRows, type TaskRow, type TaskSource } from './task-rows.ts';

function row(index: number): TaskRow {
  const messages: TaskRow['messages'] = [
    { role: 'system', content: 'tools' },
    { role: 'user', content: `tâche ${index}` },
  ];
  return { messages, env_name: 'acme/math', split: 'train', task_index: index };
}

async function* rowsOf(count: number): AsyncGenerator<TaskRow> {
  for (let index = 0; index < count; index += 1) yield row(index);
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

async function fileOf(count: number, format: 'parquet' | 'jsonl', prompt: PromptFormat): Promise<Buffer> {
  return Buffer.concat(await collect(taskFile(rowsOf(count), format, prompt)));
}

const arrayBuffer = (bytes: Buffer) => bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer;

describe('Parquet', () => {
  test('columns, types, codec, row groups and values', async () => {
    const file = arrayBuffer(await fileOf(2_500, 'parquet', 'text'));
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
    expect(rows[2_400]).toEqual({
      prompt: String.raw`[{"role": "system", "content": "tools"}, {"role": "user", "content": "t\u00e2che 2400"}]`,
      env_class: 'openreward',
      env_name: 'acme/math',
      split: 'train',
      task_index: 2400n,
    });
  });

  test('messages as a list of structs', async () => {
    const rows = await parquetReadObjects({ file: arrayBuffer(await fileOf(3, 'parquet', 'messages')) });
    expect(rows.map((each) => each['prompt'])).toEqual([0, 1, 2].map((index) => row(index).messages));
  });

  test('no rows at all is still a table', async () => {
    expect(await parquetReadObjects({ file: arrayBuffer(await fileOf(0, 'parquet', 'text')) })).toEqual([]);
  });
});

test('JSON lines carry the same keys in the same order', async () => {
  const lines = (await fileOf(2, 'jsonl', 'text')).toString().trimEnd().split('\n');
  expect(lines).toHaveLength(2);
  expect(lines[1]).toMatch(
    /^\{"prompt": "\[\{.*\}\]", "env_class": "openreward", "env_name": "acme\/math", "split": "train", "task_index": 1\}$/,
  );
  const [first] = (await fileOf(1, 'jsonl', 'messages')).toString().split('\n');
  expect(JSON.parse(first!)).toMatchObject({ prompt: row(0).messages });
});

describe('rows of tasks', () => {
  /** Later tasks answer sooner; index 3 fails; `open` counts what runs at the same time. */
  function sourceOf(counts: Record<string, number>): TaskSource & { most: number } {
    let open = 0;
    return {
      most: 0,
      numTasks: async (environment) => {
        if (!(environment in counts)) throw new Error(`404: ${environment} is unknown`);
        return counts[environment]!;
      },
      async readTask(environment, _split, index) {
        open += 1;
        this.most = Math.max(this.most, open);
        await new Promise((resolve) => setTimeout(resolve, (7 - (index % 7)) * 2));
        open -= 1;
        if (index === 3) throw new Error('setup exploded');
        return { prompt: [{ type: 'text', text: `${environment} ${index}`, detail: null }], tools: [] };
      },
    };
  }

  test('keep their order, are read in parallel within the bound, and failures are told, not dropped', async () => {
    const source = sourceOf({ 'a/b': 20, 'c/d': 2 });
    const failures: TaskFailure[] = [];
    let total = 0;
    const rows = await collect(
      taskRows({
        source,
        environments: ['a/b', 'no/such', 'c/d'],
        split: 'train',
        maxTasks: 8,
        concurrency: 4,
        signal: new AbortController().signal,
        onTotal: (count) => (total = count),
        onFailure: (failure) => failures.push(failure),
      }),
    );
    expect(total).toBe(10);
    expect(rows.map((each) => `${each.env_name} ${each.task_index}`)).toEqual([
      ...[0, 1, 2, 4, 5, 6, 7].map((index) => `a/b ${index}`),
      'c/d 0',
      'c/d 1',
    ]);
    expect(failures).toEqual([
      { environment: 'no/such', task_index: null, reason: '404: no/such is unknown' },
      { environment: 'a/b', task_index: 3, reason: 'setup exploded' },
    ]);
    expect(source.most).toBe(4);
  });

  test('an abort ends them', async () => {
    const abort = new AbortController();
    const rows = taskRows({
      source: sourceOf({ 'a/b': 50 }),
      environments: ['a/b'],
      split: 'train',
      concurrency: 2,
      signal: abort.signal,
      onFailure: () => {},
    });
    await rows.next();
    abort.abort(new Error('enough'));
    await expect(collect(rows)).rejects.toThrow('enough');
  });
});
