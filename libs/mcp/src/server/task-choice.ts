import { PalestraError } from '@palestra/protocol';
import type { Backend } from '@palestra/session';

/** The task that a client asks for, as its query or its headers say it; null = not said. */
export interface TaskWish {
  split: string | null;
  index: string | null;
}

export interface TaskChoice {
  split: string;
  index: number;
}

/**
 * The task of an episode: as wished; where only the split is said, or nothing, uniformly at random of that split, or of the first one to
 * train on. `random` in [0, 1). Throws `invalid_split`, `invalid_index`.
 */
export async function chooseTask(
  backend: Backend,
  variant: string | null,
  wish: TaskWish,
  signal: AbortSignal,
  random: () => number = Math.random,
): Promise<TaskChoice> {
  const split = wish.split ?? (await firstSplit(backend, variant, signal));
  if (wish.index !== null) {
    const index = Number(wish.index);
    if (!/^-?\d{1,15}$/.test(wish.index)) throw new PalestraError('invalid_index', { detail: `Invalid index '${wish.index}'` });
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
