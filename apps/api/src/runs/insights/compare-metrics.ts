import type { Cell, RunCells, Sample } from '@palestra/metrics';
import type { CompareMetric } from '@palestra/protocol';
import type { TaskSums } from './compare-runs.sql.ts';

interface Sums {
  count: number;
  sum: number;
  /** Null: the variance is unknown. */
  squares: number | null;
}

/** A share of `count` is a mean of zeros and ones. */
const share = (count: number, sum: number): Sums => ({ count, sum, squares: sum });

/** Rewards of the rollouts that count; as canonical figures, all others of every rollout. */
const sumsOf: Record<CompareMetric, (task: TaskSums) => Sums> = {
  reward_mean: ({ n, reward, reward_squares }) => ({ count: n, sum: reward, squares: reward_squares }),
  success: ({ n, successes }) => share(n, successes),
  turns: ({ turns_known, turns, turns_squares }) => ({ count: turns_known, sum: turns, squares: turns_squares }),
  calls: ({ n, left_out, calls, calls_squares }) => ({ count: n + left_out, sum: calls, squares: calls_squares }),
  // Calls of one rollout are not independent.
  tool_error: ({ calls, errors }) => ({ count: calls, sum: errors, squares: null }),
  truncated: ({ stops, truncated }) => share(stops, truncated),
};

function sampleOf({ count, sum, squares }: Sums): Sample {
  const mean = sum / count;
  return { count, mean, variance: squares === null || count < 2 ? null : Math.max(0, squares - count * mean * mean) / (count - 1) };
}

/** A metric of a run by task, from the sums of its tasks. */
export function cellsOf(metric: CompareMetric, tasks: readonly TaskSums[]): RunCells {
  const cells = new Map<string, Cell>();
  const total: Sums = { count: 0, sum: 0, squares: 0 };
  for (const task of tasks) {
    const sums = sumsOf[metric](task);
    if (sums.count === 0) continue;
    total.count += sums.count;
    total.sum += sums.sum;
    total.squares = sums.squares === null || total.squares === null ? null : total.squares + sums.squares;
    if (task.task_id !== null) cells.set(String(task.task_id), { ...sampleOf(sums), environment: task.environment });
  }
  return { tasks: cells, rollouts: total.count === 0 || total.squares === null ? null : sampleOf(total) };
}
