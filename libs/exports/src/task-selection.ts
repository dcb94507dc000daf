import { TimeSlice } from '@palestra/kit';
import type { TaskSpec } from '@palestra/protocol';
import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { mersenne } from 'pure-rand/generator/mersenne';
import { contentKey, type TaskMean } from './task-content.ts';

/** Tasks of one environment that an export selects from, and keys of an evaluation set: the memory is a few bytes for each. */
const MAX_TASKS = 1_000_000;
const MAX_EXCLUDED = 200_000;
const PAGE = 500;

/** Which tasks of a split a file gets, and in which order. */
export interface TaskFilter {
  /** Bounds of the mean reward of known rollouts. A task without any is left out. */
  minReward?: number | undefined;
  maxReward?: number | undefined;
  /** At least this many scored rollouts. */
  minRollouts?: number | undefined;
  /** Tasks with the content of a task of these splits are left out, */
  exclude: { environment: string; split: string }[];
  /** and those with these keys. */
  excludeKeys: string[];
  /** All tasks of all environments in an order that depends on this number only. */
  shuffleSeed?: number | undefined;
  /** Per environment, after all filters. */
  maxTasks?: number | undefined;
}

export const filtersByDifficulty = ({ minReward, maxReward, minRollouts }: TaskFilter): boolean =>
  minReward !== undefined || maxReward !== undefined || minRollouts !== undefined;

/** Where tasks are counted and compared. */
export interface TaskListing {
  splits(environment: string, signal: AbortSignal): Promise<{ name: string }[]>;
  numTasks(environment: string, split: string, signal: AbortSignal): Promise<number>;
  /** Specifications from `start` to `stop` (exclusive). */
  specs(environment: string, split: string, start: number, stop: number, signal: AbortSignal): Promise<TaskSpec[]>;
  /** The tasks with scored rollouts, by index. */
  difficulty(environment: string, split: string, signal: AbortSignal): Promise<Map<number, TaskMean>>;
}

export interface SelectedTasks {
  environment: string;
  indices: Uint32Array;
  /** null without a filter by difficulty. */
  difficulty: Map<number, TaskMean> | null;
}

interface SelectionOptions {
  source: TaskListing;
  environments: string[];
  split: string;
  filter: TaskFilter;
  signal: AbortSignal;
  /** An environment whose tasks cannot be listed is left out. */
  onFailure(environment: string, error: unknown): void;
}

/** Rejects if a split to exclude cannot be read. */
export async function selectTasks(options: SelectionOptions): Promise<SelectedTasks[]> {
  const excluded = await keysToExclude(options);
  const selected: SelectedTasks[] = [];
  for (const environment of options.environments) {
    try {
      selected.push(await selectOf(environment, excluded, options));
    } catch (error) {
      options.signal.throwIfAborted();
      options.onFailure(environment, error);
    }
  }
  return selected;
}

/** The tasks in the order of the file: that of environments and indexes, or a random one. Holds a number per task. */
export function* inOrder(selected: SelectedTasks[], shuffleSeed: number | undefined): Generator<{ of: SelectedTasks; index: number }> {
  if (shuffleSeed === undefined) {
    for (const of of selected) for (const index of of.indices) yield { of, index };
    return;
  }
  const starts: number[] = [];
  let total = 0;
  for (const { indices } of selected) {
    starts.push(total);
    total += indices.length;
  }
  const order = Uint32Array.from({ length: total }, (_, position) => position);
  shuffle(order, shuffleSeed);
  for (const position of order) {
    const which = starts.findLastIndex((start) => start <= position);
    yield { of: selected[which]!, index: selected[which]!.indices[position - starts[which]!]! };
  }
}

async function selectOf(environment: string, excluded: Set<string>, options: SelectionOptions): Promise<SelectedTasks> {
  const { source, split, filter, signal } = options;
  const { maxTasks = Infinity, shuffleSeed } = filter;
  const count = await countOf(source, environment, split, signal);
  const isFiltered = filtersByDifficulty(filter) || excluded.size > 0;
  const reach = isFiltered || shuffleSeed !== undefined ? count : Math.min(count, maxTasks);
  if (reach > MAX_TASKS) throw new Error(`It has ${count} tasks in ${split}; an export selects from at most ${MAX_TASKS}.`);
  const difficulty = filtersByDifficulty(filter) ? await source.difficulty(environment, split, signal) : null;
  let indices: Uint32Array = Uint32Array.from({ length: reach }, (_, index) => index);
  if (difficulty !== null) indices = indices.filter((index) => isWithin(difficulty.get(index), filter));
  if (excluded.size > 0) {
    const same = await tasksWith(excluded, environment, reach, options);
    indices = indices.filter((index) => !same.has(index));
  }
  // A sample of the split, not its start.
  if (shuffleSeed !== undefined && indices.length > maxTasks) shuffle(indices, shuffleSeed);
  return { environment, indices: indices.slice(0, Math.min(indices.length, maxTasks)), difficulty };
}

/** The error for an unknown split names the splits. */
async function countOf(source: TaskListing, environment: string, split: string, signal: AbortSignal): Promise<number> {
  try {
    return await source.numTasks(environment, split, signal);
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'invalid_split') throw error;
    const names = (await source.splits(environment, signal)).map(({ name }) => name);
    throw new Error(`Unknown split "${split}". Available: ${names.join(', ') || 'none'}.`, { cause: error });
  }
}

function isWithin(known: TaskMean | undefined, { minReward = -Infinity, maxReward = Infinity, minRollouts = 1 }: TaskFilter): boolean {
  return known !== undefined && known.num_rollouts >= minRollouts && known.avg_reward >= minReward && known.avg_reward <= maxReward;
}

async function keysToExclude({ source, filter, signal }: SelectionOptions): Promise<Set<string>> {
  const keys = new Set(filter.excludeKeys);
  for (const { environment, split } of filter.exclude) {
    const count = await countOf(source, environment, split, signal);
    if (keys.size + count > MAX_EXCLUDED)
      throw new Error(`An export excludes at most ${MAX_EXCLUDED} tasks; ${environment}:${split} has ${count}.`);
    for await (const { key } of keysOf(source, environment, split, count, signal)) keys.add(key);
  }
  return keys;
}

async function tasksWith(keys: Set<string>, environment: string, count: number, options: SelectionOptions): Promise<Set<number>> {
  const found = new Set<number>();
  for await (const { index, key } of keysOf(options.source, environment, options.split, count, options.signal)) {
    if (keys.has(key)) found.add(index);
  }
  return found;
}

async function* keysOf(source: TaskListing, environment: string, split: string, count: number, signal: AbortSignal) {
  const slice = new TimeSlice();
  for (let start = 0; start < count; start += PAGE) {
    const specs = await source.specs(environment, split, start, Math.min(start + PAGE, count), signal);
    signal.throwIfAborted();
    for (const [offset, spec] of specs.entries()) {
      if (slice.isOver) await slice.renew();
      yield { index: start + offset, key: contentKey(spec) };
    }
  }
}

/** Fisher and Yates's shuffle with a Mersenne twister: the same order for the same seed and length. */
function shuffle(items: Uint32Array, seed: number): void {
  const random = mersenne(seed);
  for (let last = items.length - 1; last > 0; last -= 1) {
    const drawn = uniformInt(random, 0, last);
    [items[last], items[drawn]] = [items[drawn]!, items[last]!];
  }
}
