import type { TaskFigures } from '../data/environments.ts';

/** What stored rollouts say of one task. */
export interface Difficulty {
  n: number;
  solved: number;
  avg: number;
  min: number;
  max: number;
}

/**
 * Difficulty by task index, of one split and variant. Rollouts that name no variant are the default one's. A task that several rows
 * speak of has the mean of all its rollouts.
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

/** Rollouts with a task index that name no split: nobody can say which task they are of. */
export const withoutSplit = (figures: readonly TaskFigures[]): number =>
  figures.reduce((sum, row) => sum + (row.split === null ? row.num_rollouts : 0), 0);

export interface TaskRow {
  index: number;
  difficulty: Difficulty | null;
}
export type TaskSort = 'index' | 'avg' | 'n' | 'solved';

/** Some were solved and some not: what a policy can learn from. */
const isMixed = ({ difficulty }: TaskRow): boolean => difficulty !== null && difficulty.avg > 0 && difficulty.avg < 1;

const figureOf = ({ difficulty, index }: TaskRow, sort: TaskSort): number | null => {
  if (sort === 'index') return index;
  if (difficulty === null) return null;
  return sort === 'solved' ? difficulty.solved / difficulty.n : difficulty[sort];
};

/** Tasks in the order asked for; those without rollouts come last, whatever the order. */
export function taskRows(
  count: number,
  difficulty: ReadonlyMap<number, Difficulty>,
  { sort, order, mixed }: { sort: TaskSort; order: 'asc' | 'desc'; mixed: boolean },
): TaskRow[] {
  const rows = Array.from({ length: count }, (_, index): TaskRow => ({ index, difficulty: difficulty.get(index) ?? null }));
  const shown = mixed ? rows.filter(isMixed) : rows;
  const sign = order === 'asc' ? 1 : -1;
  return shown.sort((a, b) => {
    const [x, y] = [figureOf(a, sort), figureOf(b, sort)];
    if (x === null || y === null) return x === y ? a.index - b.index : x === null ? 1 : -1;
    return sign * (x - y) || a.index - b.index;
  });
}
