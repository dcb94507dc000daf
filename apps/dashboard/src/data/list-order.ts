import { ROLLOUT_SORTS, type RolloutSort } from '@palestra/protocol';

/** The order of a list of rollouts, and its form in an address. */
export interface ListOrder {
  id: RolloutSort;
  order: 'asc' | 'desc';
}
export const NEWEST_FIRST: ListOrder = { id: 'created_at', order: 'desc' };

/** Parses an order: `-reward` is descending. A missing or unknown order is newest first. */
export function readOrder(sort: string | undefined): ListOrder {
  const id = ROLLOUT_SORTS.find((one) => one === sort?.replace(/^-/, ''));
  return id === undefined ? NEWEST_FIRST : { id, order: sort!.startsWith('-') ? 'desc' : 'asc' };
}
export function printOrder({ id, order }: { id: string; order: 'asc' | 'desc' }): string | undefined {
  return id === NEWEST_FIRST.id && order === NEWEST_FIRST.order ? undefined : `${order === 'desc' ? '-' : ''}${id}`;
}

/** The list that a rollout was opened from, in the rollout's address; the keys `n` and `p` move in it. `q` includes the filter of the run. */
export interface FromList {
  q?: string | undefined;
  sort?: string | undefined;
}
