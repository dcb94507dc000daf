import { ROLLOUT_SORTS, type RolloutSort } from '@palestra/protocol';

/** Orders of a list of rollouts, and how an address writes them. */
export interface ListOrder {
  id: RolloutSort;
  order: 'asc' | 'desc';
}
export const NEWEST_FIRST: ListOrder = { id: 'created_at', order: 'desc' };

/** `-reward` is from high to low; without a word, or with an unknown one, the newest come first. */
export function readOrder(sort: string | undefined): ListOrder {
  const id = ROLLOUT_SORTS.find((one) => one === sort?.replace(/^-/, ''));
  return id === undefined ? NEWEST_FIRST : { id, order: sort!.startsWith('-') ? 'desc' : 'asc' };
}
export function printOrder({ id, order }: { id: string; order: 'asc' | 'desc' }): string | undefined {
  return id === NEWEST_FIRST.id && order === NEWEST_FIRST.order ? undefined : `${order === 'desc' ? '-' : ''}${id}`;
}

/** The list that a rollout was opened from, as the rollout's address carries it: `n` and `p` walk in it. `q` holds the filter of the run, too. */
export interface FromList {
  q?: string | undefined;
  sort?: string | undefined;
}
