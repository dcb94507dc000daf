import { loadZstd } from '@palestra/kit/zstd';
import { type ColumnData, type ParquetSchema, parquetStream, textElement } from '../parquet-stream.ts';
import { pythonJson } from '../python-json.ts';
import { ENV_CLASS } from '../row-formats.ts';
import { taskElements } from '../task-file.ts';
import type { ChatTurn } from './chat-messages.ts';

/** A task that some rollouts solve and some do not, so that it is worth training on. */
export interface CurriculumTask {
  /** The first user text of its rollouts. */
  prompt: ChatTurn[];
  /** `owner/name`. */
  env_name: string;
  split: string;
  task_index: number;
  /** Successes divided by the `n` counted rollouts; above 0 and below 1. */
  solve_rate: number;
  n: number;
}

export const isLearnable = (solveRate: number): boolean => solveRate > 0 && solveRate < 1;

const SCHEMA: ParquetSchema = [
  { name: 'schema', num_children: 7 },
  textElement('prompt'),
  ...taskElements(),
  { name: 'solve_rate', type: 'DOUBLE', repetition_type: 'OPTIONAL' },
  { name: 'n', type: 'INT64', repetition_type: 'OPTIONAL' },
];

/**
 * The five columns of SkyRL's `prepare_tasks` (docs/reference/skyrl.md#task-export), in its order and with its Python-style prompt text,
 * then `solve_rate` and `n`. A training script can use the file in place of its own.
 */
export async function* curriculumFile(tasks: AsyncIterable<CurriculumTask>): AsyncGenerator<Uint8Array> {
  yield* parquetStream(tasks, {
    schema: SCHEMA,
    columnsOf,
    codec: 'ZSTD',
    compressors: { ZSTD: (await loadZstd()).compress },
    groupRows: 10_000,
    weightOf: ({ prompt }) => prompt.reduce((characters, { content }) => characters + (content?.length ?? 0), 0),
    groupWeight: 16_000_000,
  });
}

function columnsOf(tasks: CurriculumTask[]): ColumnData {
  return [
    { name: 'prompt', data: tasks.map(({ prompt }) => pythonJson(prompt.map(({ role, content }) => ({ role, content: content ?? '' })))) },
    { name: 'env_class', data: tasks.map(() => ENV_CLASS) },
    { name: 'env_name', data: tasks.map(({ env_name }) => env_name) },
    { name: 'split', data: tasks.map(({ split }) => split) },
    { name: 'task_index', data: tasks.map(({ task_index }) => BigInt(task_index)) },
    { name: 'solve_rate', data: tasks.map(({ solve_rate }) => solve_rate) },
    { name: 'n', data: tasks.map(({ n }) => BigInt(n)) },
  ];
}
