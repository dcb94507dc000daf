import type { JsonObject, TaskRowFormat } from '@palestra/protocol';
import { openaiMessages, openaiTools, textOf } from './openai-messages.ts';
import { pythonJson } from './python-json.ts';
import { factsOf, type TaskContent } from './task-content.ts';
import { taskMessages } from './task-prompt.ts';

/** `text`: the prompt is JSON text, as SkyRL's script writes it; `messages`: a list of `{role, content}`. */
export type PromptFormat = 'text' | 'messages';

/** The rows of a file. `skyrl-script`: the five columns of SkyRL's own script, byte for byte. */
export type RowFormat = TaskRowFormat | 'skyrl-script';

/** The format that a request means. `promptFormat` applies to SkyRL only. */
export const rowFormatOf = (format: TaskRowFormat, promptFormat: PromptFormat): RowFormat =>
  format === 'skyrl' && promptFormat === 'text' ? 'skyrl-script' : format;

/** The column by which SkyRL selects the environment class. */
export const ENV_CLASS = 'openreward';

/**
 * Type of a column, known before the first row, so that a file of any size is written row group by row group. `messages`: a list of
 * `{role, content}`, both text.
 */
export type ColumnType = 'text' | 'integer' | 'number' | 'boolean' | 'messages' | { [field: string]: ColumnType };

interface Format {
  row(task: TaskContent): JsonObject;
  /** In their order. null: no loader reads this format from Parquet. */
  columns: Record<string, ColumnType> | null;
  /** The facts are columns too, which the trainer passes on to the environment. */
  hasFactColumns: boolean;
}

const FACTS = {
  env_name: 'text',
  env_version: 'integer',
  split: 'text',
  task_index: 'integer',
  task_key: 'text',
  tool_schema_hash: 'text',
} as const;
const DIFFICULTY = { avg_reward: 'number', num_rollouts: 'integer' } as const;

const place = ({ environment, split, index }: TaskContent) => ({ env_name: environment, split, task_index: index });
/** The prompt for models that call by text: SkyRL's system prompt with the tools, then the task. */
const textMessages = ({ prompt, tools }: TaskContent): JsonObject[] => taskMessages(prompt, tools).map((message) => ({ ...message }));
const idOf = ({ environment, split, index }: TaskContent) => `${environment}:${split}:${index}`;

const SKYRL = { env_class: 'text', env_name: 'text', split: 'text', task_index: 'integer' } as const;

const slime: Format = {
  row: (task) => ({
    prompt: openaiMessages(task.messages),
    label: '',
    metadata: { palestra: factsOf(task) },
    // JSON text, which its loader accepts: Parquet would merge the schemas of all tools into one.
    tools: pythonJson(openaiTools(task.tools)),
  }),
  columns: { prompt: 'messages', label: 'text', metadata: { palestra: FACTS }, tools: 'text' },
  hasFactColumns: false,
};

/** The columns that each loader reads (docs/exports.md#tasks). integrations/python/src/palestra/rows.py has the same ones. */
const FORMATS: Record<RowFormat, Format> = {
  'skyrl-script': {
    row: (task) => ({ prompt: pythonJson(textMessages(task)), env_class: ENV_CLASS, ...place(task) }),
    columns: { prompt: 'text', ...SKYRL },
    hasFactColumns: false,
  },
  skyrl: {
    row: (task) => ({ prompt: textMessages(task), env_class: ENV_CLASS, ...place(task) }),
    columns: { prompt: 'messages', ...SKYRL },
    hasFactColumns: true,
  },
  trl: {
    row: (task) => ({ prompt: openaiMessages(task.messages), task_index: task.index }),
    columns: { prompt: 'messages', task_index: 'integer' },
    hasFactColumns: true,
  },
  verl: {
    row: (task) => ({
      data_source: task.environment,
      prompt: openaiMessages(task.messages),
      ability: 'agent',
      reward_model: { style: 'rule', ground_truth: '' },
      extra_info: { index: task.index, split: task.split, need_tools_kwargs: false },
      agent_name: 'palestra_agent',
    }),
    columns: {
      data_source: 'text',
      prompt: 'messages',
      ability: 'text',
      reward_model: { style: 'text', ground_truth: 'text' },
      extra_info: { index: 'integer', split: 'text', need_tools_kwargs: 'boolean' },
      agent_name: 'text',
    },
    hasFactColumns: true,
  },
  slime,
  miles: slime,
  tinker: { row: (task) => ({ palestra: factsOf(task) }), columns: { palestra: FACTS }, hasFactColumns: false },
  openrlhf: {
    // The label is the only column that reaches an environment there.
    row: (task) => ({ input: textMessages(task), label: pythonJson(factsOf(task)), datasource: task.environment }),
    columns: { input: 'messages', label: 'text', datasource: 'text' },
    hasFactColumns: true,
  },
  areal: {
    row: (task) => ({ messages: openaiMessages(task.messages), answer: '', palestra: factsOf(task) }),
    columns: { messages: 'messages', answer: 'text', palestra: FACTS },
    hasFactColumns: false,
  },
  'nemo-gym': {
    row: (task) => ({
      responses_create_params: {
        input: openaiMessages(task.messages),
        // The Responses API has the fields of a function beside its type.
        tools: openaiTools(task.tools).map((tool) => ({ type: 'function', ...tool.function, strict: false })),
      },
      agent_ref: { type: 'responses_api_agents', name: 'palestra_agent' },
      verifier_metadata: { palestra: factsOf(task) },
      palestra: factsOf(task),
    }),
    columns: null,
    hasFactColumns: false,
  },
  rllm: {
    row: (task) => ({ question: textOf(task.prompt), instruction: textOf(task.prompt) }),
    columns: { question: 'text', instruction: 'text' },
    hasFactColumns: true,
  },
  inspect: {
    row: (task) => ({ id: idOf(task), input: openaiMessages(task.messages), target: '', metadata: factsOf(task) }),
    columns: { id: 'text', input: 'messages', target: 'text', metadata: FACTS },
    hasFactColumns: false,
  },
  messages: {
    row: (task) => ({ messages: openaiMessages(task.messages), metadata: factsOf(task) }),
    columns: { messages: 'messages', metadata: FACTS },
    hasFactColumns: false,
  },
};

/** What a source must read of a task for this format. */
export const readsOf = (format: RowFormat) => ({
  messages: !['skyrl-script', 'skyrl', 'openrlhf', 'rllm', 'tinker'].includes(format),
  spec: format !== 'skyrl-script',
});

export function rowOf(task: TaskContent, format: RowFormat): JsonObject {
  const { row, hasFactColumns } = FORMATS[format];
  const own = row(task);
  return hasFactColumns ? { ...own, ...without(factsOf(task), own) } : own;
}

/** Names and types of the columns of a Parquet file; null for a format that is JSON lines only. */
export function columnsOf(format: RowFormat, hasDifficulty: boolean): Record<string, ColumnType> | null {
  const { columns, hasFactColumns } = FORMATS[format];
  if (columns === null) return null;
  const facts = hasDifficulty ? { ...FACTS, ...DIFFICULTY } : FACTS;
  if (hasFactColumns) return { ...columns, ...without(facts, columns) };
  return replaceFacts(columns, facts);
}

/** Whether a loader reads this format from Parquet. The others are JSON lines only. */
export const isParquetFormat = (format: RowFormat): boolean => FORMATS[format].columns !== null;

function replaceFacts(columns: Record<string, ColumnType>, facts: Record<string, ColumnType>): Record<string, ColumnType> {
  const replaced = Object.entries(columns).map(([name, type]): [string, ColumnType] => {
    if (typeof type !== 'object') return [name, type];
    return [name, type === FACTS ? facts : replaceFacts(type, facts)];
  });
  return Object.fromEntries(replaced);
}

/** The members of `values` whose names `others` does not have. */
const without = <T>(values: Record<string, T>, others: object): Record<string, T> =>
  Object.fromEntries(Object.entries(values).filter(([name]) => !(name in others)));
