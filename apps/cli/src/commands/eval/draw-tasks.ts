import { SeededRandom } from '@palestra/environment-kit';

/**
 * Indexes of `count` tasks of a split with `total`, in order. They are drawn at random, because evenly spread ones would all have the same level
 * where levels alternate. The same for every evaluation, and a larger count contains those of a smaller one.
 */
export function drawTasks(total: number, count: number): number[] {
  const all = Array.from({ length: total }, (_, index) => index);
  if (count >= total) return all;
  return new SeededRandom('tasks', total).sample(all, count).toSorted((a, b) => a - b);
}
