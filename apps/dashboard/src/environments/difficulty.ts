import type { TaskFigures } from '../data/environments.ts';

/** Figures of one task over the stored rollouts. */
export interface Difficulty {
  n: number;
  solved: number;
  avg: number;
  min: number;
  max: number;
}

/**
 * Difficulty by task index, for one split and variant. Rollouts without a variant belong to the default variant. Several rows of a task are
 * combined into the mean of all its rollouts.
 */
export function difficultyOf(
  figures: readonly TaskFigures[],
  { split, variant, isDefault }: { split: string; variant: string; isDefault: boolean },
): Map<number, Difficulty> {
  const tasks = new Map<number, Difficulty>();
  for (const row of figures) {
    const ofVariant = row.variant === null ? isDefault : row.variant === variant;
    if (row.split !== split || !ofVariant) continue;
    const before = tasks.get(row.task_index) ?? { n: 0, solved: 0, avg: 0, min: Infinity, max: -Infinity };
    const n = before.n + row.num_rollouts;
    tasks.set(row.task_index, {
      n,
      solved: before.solved + row.num_solved,
      avg: (before.avg * before.n + row.avg_reward * row.num_rollouts) / n,
      min: Math.min(before.min, row.min_reward),
      max: Math.max(before.max, row.max_reward),
    });
  }
  return tasks;
}

/** The number of rollouts with a task index but no split, so that their task is unknown. */
export const withoutSplit = (figures: readonly TaskFigures[]): number =>
  figures.reduce((sum, row) => sum + (row.split === null ? row.num_rollouts : 0), 0);

export interface TaskRow {
  index: number;
  difficulty: Difficulty | null;
}
export type TaskSort = 'index' | 'avg' | 'n' | 'solved';

/** Whether some rollouts of the task were solved and some not. */
const isMixed = ({ difficulty }: TaskRow): boolean => difficulty !== null && difficulty.avg > 0 && difficulty.avg < 1;

const figureOf = ({ difficulty, index }: TaskRow, sort: TaskSort): number | null => {
  if (sort === 'index') return index;
  if (difficulty === null) return null;
  return sort === 'solved' ? difficulty.solved / difficulty.n : difficulty[sort];
};

/** A generated split can have billions of tasks. Beyond this number of tasks only those with rollouts are listed. */
export const MOST_TASKS = 100_000;

/** Tasks in the given order; tasks without rollouts come last in both orders. */
export function taskRows(
  count: number,
  difficulty: ReadonlyMap<number, Difficulty>,
  { sort, order, mixed }: { sort: TaskSort; order: 'asc' | 'desc'; mixed: boolean },
): TaskRow[] {
  const listed = Math.min(count, MOST_TASKS);
  const rows = Array.from({ length: listed }, (_, index): TaskRow => ({ index, difficulty: difficulty.get(index) ?? null }));
  for (const [index, found] of difficulty) if (index >= listed && index < count) rows.push({ index, difficulty: found });
  const shown = mixed ? rows.filter(isMixed) : rows;
  const sign = order === 'asc' ? 1 : -1;
  return shown.sort((a, b) => {
    const [x, y] = [figureOf(a, sort), figureOf(b, sort)];
    if (x === null || y === null) return x === y ? a.index - b.index : x === null ? 1 : -1;
    return sign * (x - y) || a.index - b.index;
  });
}
