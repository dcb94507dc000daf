import type { RolloutExportFormat } from '@palestra/protocol';
import { chatMessages } from './chat-messages.ts';
import type { ExportedRollout, ExportedRow } from './exported-rollout.ts';
import { rolloutJsonLines } from './rollout-jsonl.ts';
import { rolloutParquet } from './rollout-parquet.ts';
import { type PairOf, preferenceExample, sftExample } from './training-examples.ts';

/** The input: rollouts with messages, rows without messages, pairs of a group, or tasks. */
export type FormatInput = 'rollouts' | 'narrow' | 'pairs' | 'tasks';

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

export function preferenceFile(pairs: Rows<PairOf<ExportedRollout>>, options: FileOptions): AsyncGenerator<Uint8Array> {
  return jsonLines(pairs, preferenceExample, options);
}

async function* jsonLines<Row>(rows: Rows<Row>, exampleOf: (row: Row) => object | null, options: FileOptions): AsyncGenerator<Uint8Array> {
  for await (const row of rows) {
    const example = exampleOf(row);
    if (example) yield Buffer.from(`${JSON.stringify(example)}\n`);
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
