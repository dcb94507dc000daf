import { PalestraError } from '@palestra/protocol';
import type { Backend } from '@palestra/session';

/** Split and index from the query or the headers of a client; null: not given. */
export interface TaskRequest {
  split: string | null;
  index: string | null;
}

export interface TaskChoice {
  split: string;
  index: number;
}

/**
 * Chooses the task of an episode. Without an index it is a random task of the split. The default split is the first one for training.
 * `random` in [0, 1). Throws `invalid_split`, `invalid_index`.
 */
export async function chooseTask(
  backend: Backend,
  variant: string | null,
  request: TaskRequest,
  signal: AbortSignal,
  random: () => number = Math.random,
): Promise<TaskChoice> {
  const split = request.split ?? (await firstSplit(backend, variant, signal));
  if (request.index !== null) {
    const index = Number(request.index);
    if (!/^-?\d{1,15}$/.test(request.index)) throw new PalestraError('invalid_index', { detail: `Invalid index '${request.index}'` });
    return { split, index };
  }
  const count = await backend.numTasks(variant, split, signal);
  if (count === 0) throw new PalestraError('invalid_split', { detail: `The split '${split}' has no tasks.` });
  return { split, index: Math.floor(random() * count) };
}

async function firstSplit(backend: Backend, variant: string | null, signal: AbortSignal): Promise<string> {
  const splits = await backend.splits(variant, signal);
  const chosen = splits.find(({ type }) => type === 'train') ?? splits[0];
  if (chosen === undefined) throw new PalestraError('invalid_split', { detail: 'This environment has no splits.' });
  return chosen.name;
}
