import { loadZstd } from '@palestra/kit/zstd';
import { type ColumnPart, listElements, type ParquetSchema, parquetStream } from '../parquet-stream.ts';
import type { ChatTurn } from './chat-messages.ts';
import { cellOf, type Column, elementsOf } from './narrow-columns.ts';
import type { LabelExample, PreferenceExample } from './training-examples.ts';

const GROUP_ROWS = 1_000;
const GROUP_CHARACTERS = 4_000_000;

type ExampleColumn = { name: string; type: Column['type'] | 'turns' };
const columnsOfType = (type: ExampleColumn['type'], ...names: string[]): ExampleColumn[] => names.map((name) => ({ name, type }));

const LINEAGE = [
  ...columnsOfType('string', 'run', 'environment', 'environment_version', 'split'),
  ...columnsOfType('int64', 'task_index'),
  ...columnsOfType('string', 'task_key'),
  ...columnsOfType('int32', 'step'),
  ...columnsOfType('string', 'step_prov', 'group_key', 'group_prov', 'reward_prov', 'model'),
  ...columnsOfType('int32', 'normaliser_version'),
];
const REVIEW = [
  ...columnsOfType('string', 'queue_id', 'queue', 'queue_query'),
  ...columnsOfType('int64', 'queue_seed'),
  ...columnsOfType('json', 'answers'),
];

/** The members of the JSON lines, in their order. Reviews are null in pairs by reward. */
export const PREFERENCE_COLUMNS: readonly ExampleColumn[] = [
  ...columnsOfType('turns', 'prompt', 'chosen', 'rejected'),
  ...columnsOfType('double', 'chosen_reward', 'rejected_reward', 'margin'),
  ...columnsOfType('int32', 'group_n'),
  ...columnsOfType('string', 'chosen_rollout_id', 'rejected_rollout_id'),
  ...LINEAGE,
  ...REVIEW,
];
export const LABEL_COLUMNS: readonly ExampleColumn[] = [
  ...columnsOfType('string', 'rollout_id', 'label'),
  ...columnsOfType('double', 'label_share'),
  ...columnsOfType('turns', 'prompt', 'completion'),
  ...columnsOfType('double', 'reward'),
  ...columnsOfType('string', 'stop'),
  ...LINEAGE,
  ...REVIEW,
];

/** `tool_calls` is JSON text, because its arguments are. */
const TURN_FIELDS: readonly Column<keyof ChatTurn>[] = [
  { name: 'role', type: 'string', about: '' },
  { name: 'content', type: 'string', about: '' },
  { name: 'tool_calls', type: 'json', about: '' },
  { name: 'tool_call_id', type: 'string', about: '' },
  { name: 'reasoning_content', type: 'string', about: '' },
];
const turnElements = (name: string, fields: readonly Column[]): ParquetSchema =>
  listElements(name, [{ name: 'element', repetition_type: 'OPTIONAL', num_children: fields.length }, ...fields.flatMap(elementsOf)]);
const elementsOfColumn = ({ name, type }: ExampleColumn): ParquetSchema =>
  type === 'turns' ? turnElements(name, TURN_FIELDS) : elementsOf({ name, type, about: '' });

/** One Parquet file of examples with chat messages, which are lists of structs. */
export async function* exampleParquet<Example extends PreferenceExample | LabelExample>(
  examples: AsyncIterable<Example>,
  columns: readonly ExampleColumn[],
  lineage: Record<string, string>,
): AsyncGenerator<Uint8Array> {
  yield* parquetStream(examples, {
    schema: [{ name: 'schema', num_children: columns.length }, ...columns.flatMap(elementsOfColumn)],
    columnsOf: (rows) => partsOf(rows as readonly object[] as readonly Record<string, unknown>[], columns),
    codec: 'ZSTD',
    compressors: { ZSTD: (await loadZstd()).compress },
    kvMetadata: Object.entries(lineage).map(([key, value]) => ({ key, value })),
    groupRows: GROUP_ROWS,
    weightOf: (row) => columns.reduce((sum, { name, type }) => sum + (type === 'turns' ? charactersOf(turnsOf(row, name)) : 40), 0),
    groupWeight: GROUP_CHARACTERS,
  });
}

const turnsOf = (row: object, name: string): readonly ChatTurn[] => (row as Record<string, ChatTurn[]>)[name] ?? [];
const charactersOf = (turns: readonly ChatTurn[]): number =>
  turns.reduce((sum, turn) => sum + 100 + (turn.content?.length ?? 0) + (turn.reasoning_content?.length ?? 0) + callsOf(turn).length, 0);
const callsOf = ({ tool_calls }: ChatTurn): string => (tool_calls === undefined ? '' : JSON.stringify(tool_calls));

function* partsOf(rows: readonly Record<string, unknown>[], columns: readonly ExampleColumn[]): Generator<ColumnPart> {
  for (const { name, type } of columns) {
    if (type === 'turns') {
      const data = rows.map((row) => turnsOf(row, name).map((turn) => ({ ...turn, tool_calls: callsOf(turn) || null })));
      for (const field of TURN_FIELDS)
        yield { name, data, statistics: false, schema: [{ name: 'schema', num_children: 1 }, ...turnElements(name, [field])] };
      continue;
    }
    const values = rows.map((row) => row[name] ?? null);
    const data =
      type === 'json' ? values.map((value) => (value === null ? null : JSON.stringify(value))) : values.map((value) => cellOf(type, value));
    yield { name, data, statistics: false };
  }
}
