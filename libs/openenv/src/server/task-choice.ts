import { isObject, type JsonObject, type JsonValue, PalestraError, toPlainNumber } from '@palestra/protocol';
import type { EpisodeTask } from '@palestra/session';
import { OpenEnvError } from '../wire/errors.ts';
import { type EnvironmentInfo, idOf } from './environment-info.ts';

/** The task of a reset. `split` and `index` are null for a task that the client sent. */
export interface TaskChoice {
  task: EpisodeTask;
  split: string | null;
  index: number | null;
  id: string | null;
}

/**
 * Chooses the task of a reset by its keywords. `task` is the task itself. `task_id` or `id` names a listed task. `split` with `index` names
 * one by position. `seed` alone is an index modulo the number of tasks. Without keywords the task is random. The default split is the first
 * one for training. Keywords of other types are ignored, as most environments do.
 */
export async function chooseTask(info: EnvironmentInfo, data: JsonObject): Promise<TaskChoice> {
  const { task } = data;
  if (isObject(task)) return { task: { kind: 'spec', spec: task }, split: null, index: null, id: idOf(task) };
  const named = typeof data['split'] === 'string' ? data['split'] : null;
  const id = textOf(data['task_id']) ?? textOf(data['id']);
  if (id !== null) return byId(info, id, named);
  const split = named ?? (await defaultSplit(info));
  const index = integerOf(data['index']);
  if (index !== null) return at(split, index);
  const count = await info.numTasks(split);
  if (count === 0) throw new OpenEnvError('EXECUTION_ERROR', `The split '${split}' has no tasks.`);
  const seed = bigOf(data['seed']);
  if (seed === null) return at(split, Math.floor(Math.random() * count));
  const modulus = BigInt(count);
  return at(split, Number(((seed % modulus) + modulus) % modulus));
}

const at = (split: string, index: number, id: string | null = null): TaskChoice => ({
  task: { kind: 'index', split, index },
  split,
  index,
  id,
});

async function defaultSplit(info: EnvironmentInfo): Promise<string> {
  const splits = await info.splits();
  const split = splits.find(({ type }) => type === 'train') ?? splits[0];
  if (split === undefined) throw new PalestraError('invalid_split', { detail: 'The environment has no split.' });
  return split.name;
}

async function byId(info: EnvironmentInfo, id: string, named: string | null): Promise<TaskChoice> {
  const splits = named === null ? (await info.splits()).map(({ name }) => name) : [named];
  for (const split of splits) {
    const index = (await info.taskIds(split)).get(id);
    if (index !== undefined) return at(split, index, id);
  }
  const where = named === null ? '' : ` in the split '${named}'`;
  throw new OpenEnvError('EXECUTION_ERROR', `There is no task with the id '${id}'${where}.`);
}

function textOf(value: JsonValue): string | null {
  if (typeof value === 'string') return value;
  const number = toPlainNumber(value);
  return number === null ? null : String(number);
}

const INTEGER = /^\s*[-+]?\d{1,40}\s*$/;

function bigOf(value: JsonValue): bigint | null {
  const text = typeof value === 'string' || toPlainNumber(value) !== null ? String(value).replace(/\.0+$/, '') : '';
  return INTEGER.test(text) ? BigInt(text.trim().replace(/^\+/, '')) : null;
}

function integerOf(value: JsonValue): number | null {
  const big = bigOf(value);
  const number = big === null ? null : Number(big);
  return number !== null && Number.isSafeInteger(number) ? number : null;
}
