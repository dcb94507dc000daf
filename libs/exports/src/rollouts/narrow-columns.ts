import type { ParquetElement, ParquetSchema } from '../parquet-stream.ts';
import { listElements, textElement } from '../parquet-stream.ts';
import type { ExportedMessage, ExportedRow, LensColumns, NarrowRollout } from './exported-rollout.ts';

/** `json`: JSON text in Parquet, a value in JSON lines. */
export type ColumnType = 'string' | 'json' | 'int32' | 'int64' | 'double' | 'boolean' | 'timestamp' | 'strings';

export interface Column<Name extends string = string> {
  name: Name;
  type: ColumnType;
  /** For readers of the dataset card and of docs/lake.md. */
  about: string;
}

const column = <const Name extends string>(name: Name, type: ColumnType, about: string): Column<Name> => ({ name, type, about });
const prov = <const Name extends string>(field: Name) =>
  column(`${field}_prov` as const, 'string', `provenance of ${field}: reported, parsed, inferred, unknown`);

/** The columns of a rollout, in the order of every format. No lens changes them. */
export const NARROW_COLUMNS = [
  column('rollout_id', 'string', 'as named by the client that uploaded it'),
  column('org', 'string', 'organisation'),
  column('run', 'string', 'name of the run'),
  column('run_id', 'string', 'id of the run'),
  column('rollout_name', 'string', 'not unique: some trainers name the task'),
  column('source', 'string', 'which integration uploaded it'),
  column('model', 'string', 'model, where the upload names it'),
  column('environment', 'string', 'owner/name'),
  column('environment_version', 'string', 'of the matched session, else as reported; null if unknown'),
  column('variant', 'string', 'environment in the deployment'),
  column('split', 'string', 'split of the task'),
  column('task_key', 'string', 'equal for equal tasks'),
  column('task_index', 'int64', 'index in the split'),
  column('task_spec', 'json', 'as uploaded'),
  column('phase', 'string', 'train, eval, unknown'),
  prov('phase'),
  column('step', 'int32', 'training step'),
  prov('step'),
  column('policy_step', 'int32', 'step of the policy that played it'),
  column('group_key', 'string', 'equal for samples of one prompt at one step'),
  prov('group'),
  column('sample_idx', 'int32', 'place in the group'),
  prov('sample'),
  column('reward', 'double', 'sum of the message rewards, else the reported total; null = not scored, never 0'),
  prov('reward'),
  column('reward_reported', 'double', 'total that the trainer reported'),
  column('reward_positive', 'double', 'sum of the positive message rewards'),
  column('max_reward', 'double', 'largest message reward'),
  column('last_reward', 'double', 'reward of the last message that has one'),
  column('reward_steps', 'int32', 'turns with a reward'),
  column('group_scored', 'int32', 'effective rollouts of the whole group: scored, and not ended by an error'),
  column('group_mean', 'double', 'their mean reward'),
  column('group_std', 'double', 'their standard deviation, ddof 1'),
  column('advantage', 'double', '(reward - group_mean) / (group_std + 1e-6); null in groups of one'),
  column('stop', 'string', 'canonical stop reason'),
  prov('stop'),
  column('stop_raw', 'string', 'stop reason as uploaded'),
  column('failure', 'string', 'environment or infrastructure; null if the policy caused the end'),
  column('finished', 'boolean', 'the environment ended it'),
  column('turns', 'int32', 'turns of the model'),
  prov('turns'),
  column('num_messages', 'int32', 'messages received'),
  column('tool_calls', 'int32', 'tool calls'),
  column('tool_errors', 'int32', 'tool results that are errors'),
  column('tokens_out', 'int32', 'tokens that the model wrote'),
  column('tokens_tool', 'int32', 'tokens of tool results'),
  prov('tokens'),
  column('bytes', 'int64', 'of all messages'),
  column('gaps', 'int32', 'missing messages'),
  column('flags', 'strings', 'anomalies of the upload'),
  column('latency_ms', 'double', 'of its tool calls in the session ledger, together'),
  prov('telemetry'),
  column('verdict', 'string', 'of the comparison with the session ledger: verified, partial, unverified'),
  column('session_id', 'string', 'session in which it was played'),
  column('metadata', 'json', 'of the start event, as uploaded'),
  column('rollout_info', 'json', 'as uploaded, updates merged'),
  column('annotations', 'json', 'verdicts, scores, tags and notes'),
  column('normaliser_version', 'int32', 'of the rules that made this row'),
  column('started_at', 'timestamp', 'start event, by the clock of the client'),
  column('received_at', 'timestamp', 'time of its first event'),
  column('last_at', 'timestamp', 'time of its last event'),
] as const satisfies readonly Column<keyof NarrowRollout>[];

/** Columns after `NARROW_COLUMNS` in exports: the rollout as the lens counts it. The dataset card describes them. */
export const LENS_COLUMNS = [
  column('lens_reward', 'double', 'reward as the trainer of the lens counts it'),
  column(
    'lens_success',
    'boolean',
    'whether that trainer counts it as solved; null = it does not say so of single rollouts, or it is not known',
  ),
  column('lens_counted', 'boolean', 'whether it is in the means of that trainer; null = not known'),
] as const satisfies readonly Column<keyof LensColumns>[];

export const EXPORT_COLUMNS: readonly Column<keyof ExportedRow>[] = [...NARROW_COLUMNS, ...LENS_COLUMNS];

export const MESSAGE_COLUMNS = [
  column('index', 'int32', ''),
  column('type', 'string', ''),
  column('content', 'string', ''),
  column('summary', 'string', ''),
  column('content_reference', 'string', ''),
  column('name', 'string', ''),
  column('call_id', 'string', ''),
  column('reward', 'double', ''),
  column('is_finished', 'boolean', ''),
  column('metadata', 'json', ''),
  column('sent_at', 'timestamp', ''),
] as const satisfies readonly Column<keyof ExportedMessage>[];

/** The Parquet schema elements of a column. */
export function elementsOf({ name, type }: Column): ParquetSchema {
  const flat = (more: Partial<ParquetElement>): ParquetSchema => [{ name, repetition_type: 'OPTIONAL', ...more } as ParquetElement];
  switch (type) {
    case 'string':
    case 'json':
      return [textElement(name)];
    case 'strings':
      return listElements(name, [textElement('element')]);
    case 'int32':
      return flat({ type: 'INT32' });
    case 'int64':
      return flat({ type: 'INT64' });
    case 'double':
      return flat({ type: 'DOUBLE' });
    case 'boolean':
      return flat({ type: 'BOOLEAN' });
    case 'timestamp':
      return flat({
        type: 'INT64',
        converted_type: 'TIMESTAMP_MILLIS',
        logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' },
      });
  }
}

/** The value in the form that hyparquet-writer needs for the column. */
export function cellOf(type: ColumnType, value: unknown): unknown {
  return type === 'int64' && typeof value === 'number' ? BigInt(value) : value;
}
