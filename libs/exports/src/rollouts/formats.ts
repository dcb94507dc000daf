import type { RolloutExportFormat } from '@palestra/protocol';
import { chatMessages } from './chat-messages.ts';
import type { ExportedRollout, ExportedRow } from './exported-rollout.ts';
import { exampleParquet, LABEL_COLUMNS, PREFERENCE_COLUMNS } from './example-parquet.ts';
import { rolloutJsonLines } from './rollout-jsonl.ts';
import { rolloutParquet } from './rollout-parquet.ts';
import { labelExample, type LabelledRollout, type PairOf, preferenceExample, sftExample } from './training-examples.ts';

/** The input: rollouts with messages, rows without messages, pairs of a group, labelled rollouts of a review, or tasks. */
export type FormatInput = 'rollouts' | 'narrow' | 'pairs' | 'labels' | 'tasks';

interface FormatDescription {
  input: FormatInput;
  extension: 'parquet' | 'jsonl';
}

export const FORMATS: Record<RolloutExportFormat, FormatDescription> = {
  parquet: { input: 'rollouts', extension: 'parquet' },
  'rollouts-parquet': { input: 'narrow', extension: 'parquet' },
  jsonl: { input: 'rollouts', extension: 'jsonl' },
  openai: { input: 'rollouts', extension: 'jsonl' },
  hf: { input: 'rollouts', extension: 'parquet' },
  sft: { input: 'rollouts', extension: 'jsonl' },
  preference: { input: 'pairs', extension: 'jsonl' },
  'preference-parquet': { input: 'pairs', extension: 'parquet' },
  labels: { input: 'labels', extension: 'jsonl' },
  'labels-parquet': { input: 'labels', extension: 'parquet' },
  curriculum: { input: 'tasks', extension: 'parquet' },
};

export const CONTENT_TYPES = { parquet: 'application/vnd.apache.parquet', jsonl: 'application/x-ndjson' } as const;

export interface FileOptions {
  /** Written to the footer of Parquet files. */
  lineage: Record<string, string>;
  /** Called for a row that is skipped, because nothing can be learned from it (no message of the model, different prompts). */
  onSkip(): void;
}

type Rows<T> = AsyncIterable<T>;

/** Writes one file of a format whose rows are rollouts with messages. */
export function rolloutFile(rows: Rows<ExportedRollout>, format: RolloutExportFormat, options: FileOptions): AsyncGenerator<Uint8Array> {
  switch (format) {
    case 'jsonl':
      return rolloutJsonLines(rows);
    case 'openai':
      return jsonLines(rows, openAiExample, options);
    case 'sft':
      return jsonLines(rows, sftExample, options);
    default:
      return rolloutParquet(rows, { messages: true, lineage: options.lineage });
  }
}

export function narrowFile(rows: Rows<ExportedRow>, { lineage }: FileOptions): AsyncGenerator<Uint8Array> {
  return rolloutParquet(rows, { messages: false, lineage });
}

export function preferenceFile(
  pairs: Rows<PairOf<ExportedRollout>>,
  format: RolloutExportFormat,
  options: FileOptions,
): AsyncGenerator<Uint8Array> {
  if (format === 'preference') return jsonLines(pairs, preferenceExample, options);
  return exampleParquet(examplesOf(pairs, preferenceExample, options), PREFERENCE_COLUMNS, options.lineage);
}

export function labelFile(
  rollouts: Rows<LabelledRollout<ExportedRollout>>,
  format: RolloutExportFormat,
  options: FileOptions,
): AsyncGenerator<Uint8Array> {
  if (format === 'labels') return jsonLines(rollouts, labelExample, options);
  return exampleParquet(examplesOf(rollouts, labelExample, options), LABEL_COLUMNS, options.lineage);
}

async function* jsonLines<Row>(rows: Rows<Row>, exampleOf: (row: Row) => object | null, options: FileOptions): AsyncGenerator<Uint8Array> {
  for await (const example of examplesOf(rows, exampleOf, options)) yield Buffer.from(`${JSON.stringify(example)}\n`);
}

async function* examplesOf<Row, Example>(
  rows: Rows<Row>,
  exampleOf: (row: Row) => Example | null,
  options: FileOptions,
): AsyncGenerator<Example> {
  for await (const row of rows) {
    const example = exampleOf(row);
    if (example) yield example;
    else options.onSkip();
  }
}

/** Limits of OpenAI's metadata: 16 pairs of strings, values of 512 characters. */
const MAX_METADATA_CHARACTERS = 512;

/** A conversation in OpenAI's chat format. `metadata`, which the format allows, says where it comes from. */
function openAiExample(rollout: ExportedRollout): object | null {
  const messages = chatMessages(rollout.messages);
  if (messages.length === 0) return null;
  const { rollout_id, run, environment, environment_version, split, task_index, step, step_prov, reward, reward_prov, stop } = rollout;
  const facts = { rollout_id, run, environment, environment_version, split, task_index, step, step_prov, reward, reward_prov, stop };
  const known = Object.entries(facts).filter(([, value]) => value !== null);
  return { messages, metadata: Object.fromEntries(known.map(([key, value]) => [key, String(value).slice(0, MAX_METADATA_CHARACTERS)])) };
}
