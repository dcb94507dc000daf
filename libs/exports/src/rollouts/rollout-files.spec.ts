import { decompress } from '@bokuweb/zstd-wasm';
import { parquetMetadataAsync, parquetReadObjects } from 'hyparquet';
import { describe, expect, test } from 'vitest';
import type { ExportedMessage, ExportedRollout } from './exported-rollout.ts';
import {
  addFigures,
  advantageOf,
  type CurriculumTask,
  curriculumFile,
  datasetCard,
  narrowFile,
  noFigures,
  NARROW_COLUMNS,
  preferenceFile,
  preferencePairs,
  redactMessages,
  redactNarrow,
  rewardStd,
  rolloutFile,
  type RolloutFormat,
  ShardedRows,
  shardName,
  zstdCompressor,
} from './index.ts';

await zstdCompressor();
const compressors = { ZSTD: (input: Uint8Array) => decompress(input) };

function message(index: number, type: ExportedMessage['type'], content: string, more: Partial<ExportedMessage> = {}): ExportedMessage {
  const none = { summary: null, content_reference: null, name: null, call_id: null, reward: null, metadata: null };
  return { index, type, content, is_finished: false, sent_at: new Date(1_700_000_000_000 + index), ...none, ...more };
}

const transcript = (answer: string): ExportedMessage[] => [
  message(0, 'system_message', 'You play.'),
  message(1, 'user_message', 'Who was it?'),
  message(2, 'reasoning', 'Hm, the butler.'),
  message(3, 'assistant_message', 'I accuse. <tool_call>\n{"name": "accuse"}\n</tool_call>'),
  message(4, 'tool_call', `{"name": "${answer}"}`, { name: 'accuse', call_id: 'c1', metadata: '{"big": 12345678901234567890}' }),
  message(5, 'tool_result', 'noted', { call_id: 'c1', reward: 0.5, is_finished: true }),
];

function rollout(k: number, more: Partial<ExportedRollout> = {}): ExportedRollout {
  const known = 'reported' as const;
  return {
    rollout_id: `00000000-0000-4000-8000-${String(k).padStart(12, '0')}`,
    org: 'acme',
    run: 'r',
    run_id: 'run-1',
    rollout_name: `n${k}`,
    source: 'generic',
    model: null,
    environment: 'acme/whodunit',
    environment_version: '3',
    variant: null,
    split: 'train',
    task_key: 't1',
    task_index: 7,
    task_spec: '{"seed": 1.0}',
    phase: 'train',
    phase_prov: known,
    step: 4,
    step_prov: 'inferred',
    policy_step: null,
    group_key: '-9007199254740993',
    group_prov: 'parsed',
    sample_idx: k,
    sample_prov: 'inferred',
    reward: 0.5,
    reward_prov: 'parsed',
    reward_reported: null,
    reward_positive: 0.5,
    max_reward: 0.5,
    last_reward: 0.5,
    reward_steps: 1,
    group_scored: 4,
    group_mean: 0.5,
    group_std: 0.5,
    advantage: 0,
    stop: 'finished',
    stop_prov: known,
    stop_raw: 'stop',
    failure: null,
    finished: true,
    turns: 1,
    turns_prov: known,
    num_messages: 6,
    tool_calls: 1,
    tool_errors: 0,
    tokens_out: 5,
    tokens_tool: null,
    tokens_prov: 'inferred',
    bytes: 123,
    gaps: 0,
    flags: ['stamped_turn'],
    latency_ms: null,
    telemetry_prov: 'unknown',
    verdict: null,
    session_id: null,
    metadata: '{"total_reward": 1.0}',
    rollout_info: null,
    annotations: null,
    normaliser_version: 1,
    started_at: new Date(1_700_000_000_000),
    received_at: new Date(1_700_000_001_000),
    last_at: new Date(1_700_000_002_000),
    messages: transcript('Eve'),
    ...more,
  } as ExportedRollout;
}

async function* each<T>(items: Iterable<T>): AsyncGenerator<T> {
  yield* items;
}

async function bytesOf(file: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of file) pieces.push(piece);
  return Buffer.concat(pieces);
}

async function linesOf(file: AsyncIterable<Uint8Array>): Promise<any[]> {
  const text = (await bytesOf(file)).toString();
  expect(text.endsWith('\n')).toBe(true);
  return text
    .slice(0, -1)
    .split('\n')
    .map((line) => JSON.parse(line));
}

const options = () => {
  const skipped = { count: 0 };
  return { lineage: { query: 'reward:>0' }, onSkip: () => (skipped.count += 1), skipped };
};
const arrayBufferOf = (bytes: Buffer) => new Uint8Array(bytes).buffer;
const write = (rows: ExportedRollout[], format: RolloutFormat) => rolloutFile(each(rows), format, options());

describe('Parquet', () => {
  test('holds every column, messages as a list of structs, zstd, and where it comes from', async () => {
    const empty = rollout(1, { messages: [], flags: [], reward: null, step: null, task_spec: null });
    const file = arrayBufferOf(await bytesOf(write([rollout(0), empty], 'parquet')));
    const metadata = await parquetMetadataAsync(file);
    expect(metadata.key_value_metadata).toEqual([{ key: 'query', value: 'reward:>0' }]);
    const columns = metadata.row_groups.flatMap((group) => group.columns);
    expect(new Set(columns.map((each) => each.meta_data?.codec))).toEqual(new Set(['ZSTD']));
    const [first, second] = await parquetReadObjects({ file, compressors });
    expect(Object.keys(first!)).toEqual([...NARROW_COLUMNS.map(({ name }) => name), 'messages']);
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
    expect(Object.keys(rows[0]!)).toEqual(NARROW_COLUMNS.map(({ name }) => name));
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

describe('JSON lines', () => {
  test('keep JSON as values, with every digit', async () => {
    const text = (await bytesOf(write([rollout(0)], 'jsonl'))).toString();
    expect(text).toContain('"metadata":{"big": 12345678901234567890}');
    expect(text).toContain('"task_spec":{"seed": 1.0}');
    expect(JSON.parse(text)).toMatchObject({ received_at: '2023-11-14T22:13:21.000Z', group_key: '-9007199254740993' });
  });
});

describe('OpenAI messages', () => {
  test('text and call are one message, the block that repeats the call is not in the text, reasoning stays out', async () => {
    const [line] = await linesOf(write([rollout(0)], 'openai'));
    expect(line.messages).toEqual([
      { role: 'system', content: 'You play.' },
      { role: 'user', content: 'Who was it?' },
      {
        role: 'assistant',
        content: 'I accuse.',
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'accuse', arguments: '{"name": "Eve"}' } }],
      },
      { role: 'tool', content: 'noted', tool_call_id: 'c1' },
    ]);
    expect(Object.keys(line)).toEqual(['messages', 'metadata']);
    expect(Object.values(line.metadata).every((value) => typeof value === 'string')).toBe(true);
    expect(Object.keys(line.metadata).length).toBeLessThanOrEqual(16);
  });

  test('repeated ids become unique, every call but those at the end has an answer, a result without call is told by the user', async () => {
    const call = (index: number, id: string | null) => message(index, 'tool_call', '{}', { name: 'look', call_id: id });
    const result = (index: number, id: string | null, text: string) => message(index, 'tool_result', text, { call_id: id });
    const messages = [
      call(0, 'x'),
      call(1, 'x'),
      result(2, 'x', 'first'),
      result(3, 'x', 'second'),
      call(4, 'x'),
      message(5, 'user_message', 'go on'),
      result(6, 'gone', 'lost'),
      call(7, null),
      result(8, null, 'anonymous'),
      call(9, 'end'),
    ];
    const [line] = await linesOf(write([rollout(0, { messages })], 'openai'));
    const shape = line.messages.map((turn: any) => [
      turn.role,
      turn.tool_calls?.map(({ id }: any) => id) ?? turn.tool_call_id ?? turn.content,
      turn.content,
    ]);
    expect(shape).toEqual([
      ['assistant', ['x', 'x-2'], null],
      ['tool', 'x', 'first'],
      ['tool', 'x-2', 'second'],
      ['assistant', ['x-3'], null],
      ['tool', 'x-3', ''],
      ['user', 'go on', 'go on'],
      ['user', 'lost', 'lost'],
      ['assistant', ['call_8_0'], null],
      ['tool', 'call_8_0', 'anonymous'],
      ['assistant', ['end'], null],
    ]);
  });
});

describe('SFT', () => {
  test('only what the model wrote carries loss; a rollout without a word of it is no example', async () => {
    const told = options();
    const silent = rollout(1, { messages: [message(0, 'user_message', 'hello?')] });
    const lines = await linesOf(rolloutFile(each([rollout(0), silent]), 'sft', told));
    expect(told.skipped.count).toBe(1);
    expect(lines).toHaveLength(1);
    const parts = [...lines[0].prompt, ...lines[0].completion].map(({ role, weight, train }: any) => [role, weight, train]);
    expect(parts).toEqual([
      ['system', 0, false],
      ['user', 0, false],
      ['assistant', 1, true],
      ['tool', 0, false],
    ]);
    expect(lines[0].completion[0].reasoning_content).toBe('Hm, the butler.');
    expect(lines[0]).toMatchObject({
      environment: 'acme/whodunit',
      environment_version: '3',
      step_prov: 'inferred',
      normaliser_version: 1,
    });
  });
});

describe('preference pairs', () => {
  const group = (key: string, rewards: (number | null)[], more: Partial<ExportedRollout>[] = []) =>
    rewards.map((reward, k) => rollout(Number(key) * 100 + k, { group_key: key, reward, messages: transcript(`m${k}`), ...more[k] }));

  test('best against worst of each group; none without variance, without two scored, or of rollouts that failed by no fault of theirs', async () => {
    const rows = [
      ...group('1', [0, 1, 0.5, null]),
      ...group('2', [1, 1, 1 + 5e-7]),
      ...group('3', [null, 0, null]),
      ...group('4', [0, 1], [{ failure: 'infrastructure' }]),
      ...group('5', [0, 1], [{ stop: 'timeout' }]),
      ...group('6', [-1, 0, 3]),
      rollout(1, { group_key: null, reward: 9 }),
    ];
    const pairs: [string | null, number, number, number][] = [];
    for await (const { chosen, rejected, group_n } of preferencePairs(each(rows)))
      pairs.push([chosen.group_key, chosen.reward!, rejected.reward!, group_n]);
    expect(pairs).toEqual([
      ['1', 1, 0, 3],
      ['6', 3, -1, 3],
    ]);
  });

  test('an example has the question once and both answers; groups of two runs are two, and different questions are none', async () => {
    const told = options();
    const other = { messages: [message(0, 'user_message', 'another question'), message(1, 'assistant_message', 'yes')] };
    const rows = [...group('1', [0, 1]), ...group('1', [1, 0], [{ run_id: 'run-2' }, { run_id: 'run-2' }]), ...group('2', [0, 1], [other])];
    const lines = await linesOf(preferenceFile(preferencePairs(each(rows)), told));
    expect(lines).toHaveLength(2);
    expect(told.skipped.count).toBe(1);
    expect(lines[0]).toMatchObject({ margin: 1, chosen_reward: 1, rejected_reward: 0, group_key: '1', group_n: 2 });
    expect(lines[0].prompt.map(({ role }: any) => role)).toEqual(['system', 'user']);
    expect(lines[0].chosen[0].tool_calls[0].function.arguments).toBe('{"name": "m1"}');
    expect(lines[0].rejected[0].tool_calls[0].function.arguments).toBe('{"name": "m0"}');
  });

  test('advantages are those of dashboard.md 3.1', () => {
    expect(advantageOf(1, { scored: 4, mean: 0.5, std: 0.577350269 })).toBeCloseTo(0.866024, 5);
    expect(advantageOf(null, { scored: 4, mean: 0.5, std: 0.5 })).toBeNull();
    expect(advantageOf(1, { scored: 1, mean: 1, std: null })).toBeNull();
    expect(advantageOf(1, { scored: 3, mean: 1, std: 0 })).toBe(0);
  });
});

test('a curriculum has the columns of prepare_tasks, then how often it was solved', async () => {
  const task: CurriculumTask = {
    prompt: [{ role: 'user', content: 'é' }],
    env_name: 'a/b',
    split: 'train',
    task_index: 3,
    solve_rate: 0.25,
    n: 8,
  };
  const rows = await parquetReadObjects({ file: arrayBufferOf(await bytesOf(curriculumFile(each([task])))), compressors });
  expect(Object.entries(rows[0]!)).toEqual([
    ['prompt', '[{"role": "user", "content": "\\u00e9"}]'],
    ['env_class', 'openreward'],
    ['env_name', 'a/b'],
    ['split', 'train'],
    ['task_index', 3n],
    ['solve_rate', 0.25],
    ['n', 8n],
  ]);
});

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

describe('lineage', () => {
  test('figures go on after a pause, count nobody twice, and leave nulls out', () => {
    const whole = noFigures();
    let paused = noFigures();
    for (const [k, reward] of [1, null, 0, 0.25].entries()) {
      const row = rollout(k, { reward, failure: k === 3 ? 'environment' : null });
      addFigures(whole, row);
      addFigures(paused, row);
      paused = JSON.parse(JSON.stringify(paused));
    }
    expect(paused).toEqual(whole);
    expect(whole).toMatchObject({ rollouts: 4, scored: 3, effective: 2, environments: { 'acme/whodunit@3': 4 }, normalisers: { 1: 4 } });
    expect(whole.reward.mean).toBeCloseTo(5 / 12, 12);
    expect(rewardStd(whole)).toBeCloseTo(0.520416, 6);
  });

  test('a name cannot break out of the card', () => {
    const figures = noFigures();
    addFigures(figures, rollout(0, { environment: 'a/b\n---\n# hello <script>' }));
    const card = datasetCard(
      {
        export_id: 'e',
        format: 'hf',
        org: 'acme',
        run: 'x"\n---\nlicense: mit',
        query: 'q',
        canonical_query: 'q',
        lens: 'canonical',
        redacted: false,
        as_of: '9',
        created_at: '2026-01-01T00:00:00.000Z',
      },
      figures,
    );
    expect(card.match(/^---$/gm)).toHaveLength(2);
    expect(card.match(/^license:/gm)).toHaveLength(1);
    expect(card).not.toContain('<script>');
  });

  test('credentials are replaced, and JSON stays JSON', () => {
    const secret = `{"key": "sk-${'a'.repeat(30)}", "h": "Bearer abcdefghijklmnop.qrs", "aws": "AKIAABCDEFGHIJKLMNOP", "n": 1.0}`;
    const row = redactNarrow(rollout(0, { metadata: secret }));
    expect(JSON.parse(row.metadata!)).toEqual({
      key: '[redacted:api_key]',
      h: 'Bearer [redacted:bearer_token]',
      aws: '[redacted:aws_key]',
      n: 1,
    });
    const pem = '-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----';
    expect(redactMessages([message(0, 'tool_result', `see ${pem} there`)])[0]!.content).toBe('see [redacted:private_key] there');
  });
});
