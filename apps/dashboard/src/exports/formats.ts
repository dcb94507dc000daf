import type { RolloutCount, RolloutExportFormat } from '@palestra/protocol';

interface FormatDescription {
  label: string;
  /** The content of a row. */
  row: string;
  files: string;
  purpose: string;
  /** What the number of rows depends on. */
  rows: 'rollouts' | 'pairs' | 'tasks' | 'labels';
}

/** Every export format of the API; a missing format is a type error. See docs/exports.md. */
export const EXPORT_FORMATS: Record<RolloutExportFormat, FormatDescription> = {
  parquet: {
    label: 'Parquet',
    row: 'a rollout with its messages',
    files: 'Parquet, zstd',
    purpose: 'DuckDB, pandas, Spark; messages are a list of structs',
    rows: 'rollouts',
  },
  'rollouts-parquet': {
    label: 'Parquet, narrow',
    row: 'a rollout without messages',
    files: 'Parquet, zstd',
    purpose: 'curves and filters',
    rows: 'rollouts',
  },
  jsonl: {
    label: 'JSON lines',
    row: 'a rollout with its messages',
    files: 'JSON lines',
    purpose: 'numbers keep every digit',
    rows: 'rollouts',
  },
  openai: {
    label: 'OpenAI chat',
    row: 'messages and metadata of a rollout',
    files: 'JSON lines',
    purpose: 'tool_calls and tool messages of the chat format',
    rows: 'rollouts',
  },
  hf: {
    label: 'Hugging Face',
    row: 'a rollout with its messages',
    files: 'folder with README.md',
    purpose: 'load_dataset(folder); its card has query, lens, versions',
    rows: 'rollouts',
  },
  sft: {
    label: 'SFT',
    row: 'prompt and completion of a rollout',
    files: 'JSON lines',
    purpose: 'each message has train and weight: 1 for the model’s own',
    rows: 'rollouts',
  },
  preference: {
    label: 'Preference pairs',
    row: 'best against worst of a group',
    files: 'JSON lines',
    purpose: 'prompt, chosen, rejected, margin',
    rows: 'pairs',
  },
  'preference-parquet': {
    label: 'Preference pairs, Parquet',
    row: 'best against worst of a group',
    files: 'Parquet, zstd',
    purpose: 'as Preference pairs; messages are a list of structs',
    rows: 'pairs',
  },
  labels: {
    label: 'Labels of a review',
    row: 'a reviewed rollout with its labels',
    files: 'JSON lines',
    purpose: 'prompt, completion, label, answers with reviewer and time',
    rows: 'labels',
  },
  'labels-parquet': {
    label: 'Labels of a review, Parquet',
    row: 'a reviewed rollout with its labels',
    files: 'Parquet, zstd',
    purpose: 'as Labels of a review; messages are a list of structs',
    rows: 'labels',
  },
  curriculum: {
    label: 'Curriculum',
    row: 'a task with 0 < solve rate < 1',
    files: 'Parquet, zstd',
    purpose: 'the columns of prepare_tasks, solve_rate and n',
    rows: 'tasks',
  },
};
/** Formats of a query. Labels come from a review queue (its page exports them). */
export const FORMAT_NAMES = (Object.keys(EXPORT_FORMATS) as RolloutExportFormat[]).filter((name) => EXPORT_FORMATS[name].rows !== 'labels');

/** The estimated number of rows, before the export counts them. */
export function estimateRows(format: RolloutExportFormat, rollouts: Pick<RolloutCount, 'count' | 'count_is'> | undefined): string {
  if (!rollouts) return 'Counting…';
  const some = `${rollouts.count_is === 'at_least' ? 'at least ' : ''}${rollouts.count}`;
  const all = `${some} ${rollouts.count === 1 ? 'rollout' : 'rollouts'}`;
  switch (EXPORT_FORMATS[format].rows) {
    case 'rollouts':
      return `${some} ${rollouts.count === 1 ? 'row' : 'rows'}, one per rollout`;
    case 'labels':
      return 'One row per reviewed rollout';
    case 'pairs':
      return `At most one pair per group, from ${all}`;
    case 'tasks':
      return `One row per task that is sometimes solved, from ${all}`;
  }
}
