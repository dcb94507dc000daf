import type { SeededRandom } from '@palestra/environment-kit';
import { combine, defineFamily, integers, type Json, times } from './family.ts';

const PRIME = 1_000_007;

const SPLIT_GOALS = {
  minMax: { says: 'the largest sum of a part is as small as possible. Return that sum', combine: 'max', best: 'min', part: 'sum' },
  maxMin: { says: 'the smallest sum of a part is as large as possible. Return that sum', combine: 'min', best: 'max', part: 'sum' },
  squares: {
    says: 'the sum of the squares of the sums of the parts is as small as possible. Return it',
    combine: 'add',
    best: 'min',
    part: 'square',
  },
  maxima: {
    says: 'the sum of the largest numbers of the parts is as small as possible. Return it',
    combine: 'add',
    best: 'min',
    part: 'largest',
  },
} as const;

const COMBINED = {
  max: 'max(cost(start, end), best(end, parts - 1))',
  min: 'min(cost(start, end), best(end, parts - 1))',
  add: 'cost(start, end) + best(end, parts - 1)',
} as const;
/** Python: the best value of the numbers from `start` on in `parts` parts. */
function bestSplit(goal: keyof typeof SPLIT_GOALS, least: number): string {
  const { best, combine: join } = SPLIT_GOALS[goal];
  return `${best}(${COMBINED[join]} for end in range(start + ${least}, n - (parts - 1) * ${least} + 1))`;
}

export const listSplits = defineFamily(
  'list_splits',
  combine({ goal: ['minMax', 'maxMin', 'squares', 'maxima'], least: [1, 2, 3] } as const),
  ({ goal, least }) => ({
    level: least === 1 ? 4 : 5,
    parameters: 'numbers, k',
    statement: `
      Cut the list into exactly \`k\` contiguous parts of at least ${least === 1 ? 'one number' : `${least} numbers`} each, such that ${SPLIT_GOALS[goal].says}. Every number belongs to a part. Return -1 if the list is too short.

      There are at most 120 numbers from 0 to 1000, and \`k\` is from 1 to 12.`,
    reference(numbers: number[], k: number) {
      const n = numbers.length;
      const { combine: join, best, part } = SPLIT_GOALS[goal];
      const worst = best === 'min' ? Infinity : -Infinity;
      let table = times(n + 1, (length) => (length === 0 ? (join === 'min' ? Infinity : 0) : worst));
      for (let parts = 1; parts <= k; parts += 1) {
        const next = times(n + 1, () => worst);
        for (let end = least; end <= n; end += 1) {
          let [sum, largest] = [0, 0];
          for (let start = end - 1; start >= 0; start -= 1) {
            sum += numbers[start]!;
            largest = Math.max(largest, numbers[start]!);
            const before = table[start]!;
            const isStart = parts === 1 ? start === 0 : before !== worst && start > 0;
            if (end - start < least || !isStart) continue;
            const own = { sum, square: sum * sum, largest }[part];
            const value = join === 'add' ? before + own : join === 'max' ? Math.max(before, own) : Math.min(before, own);
            next[end] = best === 'min' ? Math.min(next[end]!, value) : Math.max(next[end]!, value);
          }
        }
        table = next;
      }
      return Number.isFinite(table[n]) ? table[n]! : -1;
    },
    python: `
      from functools import lru_cache

      def solve(numbers, k):
          n = len(numbers)
          if n < k * ${least}:
              return -1
          prefix = [0]
          for number in numbers:
              prefix.append(prefix[-1] + number)

          @lru_cache(maxsize=None)
          def best(start, parts):
              if parts == 1:
                  return cost(start, n)
              return ${bestSplit(goal, least)}

          @lru_cache(maxsize=None)
          def cost(start, end):
              return ${{ sum: 'prefix[end] - prefix[start]', square: '(prefix[end] - prefix[start]) ** 2', largest: 'max(numbers[start:end])' }[SPLIT_GOALS[goal].part]}

          return best(0, k)`,
    mistakes: [
      [`range(start + ${least}, `, `range(start + ${least + 1}, `],
      [`n < k * ${least}`, least === 1 ? 'n <= k' : 'n < k'],
    ],
    slow: [
      `
      def solve(numbers, k):
          n = len(numbers)
          if n < k * ${least}:
              return -1
          def cost(start, end):
              return ${{ sum: 'sum(numbers[start:end])', square: 'sum(numbers[start:end]) ** 2', largest: 'max(numbers[start:end])' }[SPLIT_GOALS[goal].part]}
          def best(start, parts):
              if parts == 1:
                  return cost(start, n)
              return ${bestSplit(goal, least)}
          return best(0, k)`,
    ],
    inputs: (random) => [
      [[7, 2, 5, 10, 8, 3], 2],
      [[1, 2, 3], 4],
      [integers(random, 9, 0, 20), 3],
      [[4], 1],
      [[], 1],
      [[5, 5], 2],
      [[0, 0, 0, 9, 0, 0, 0], 2],
      [integers(random, 12, 1, 9), 4],
      ...times(8, () => [integers(random, random.integer(9, 25), 0, 50), random.integer(2, 3)]),
      [integers(random, 3 * least, 10, 99), 3],
      [integers(random, 120, 0, 1000), 12],
      [integers(random, 100, 0, 30), 9],
    ],
  }),
);

const GRID_GOALS = {
  largest: 'the largest possible sum of the numbers on the way',
  smallest: 'the smallest possible sum of the numbers on the way',
  ways: `the number of ways with the largest possible sum, as the remainder modulo ${PRIME}`,
} as const;

export const gridSums = defineFamily(
  'grid_sums',
  combine({ goal: ['largest', 'smallest', 'ways'], diagonal: [false, true], blocked: [false, true] } as const),
  ({ goal, diagonal, blocked }) => ({
    level: goal === 'ways' ? 4 : 3,
    parameters: 'grid',
    statement: `
      \`grid\` is a list of rows of numbers${blocked ? '; `None` stands for a cell that cannot be entered' : ''}. A way leads from the first cell of the first row to the last cell of the last row; each step goes one cell to the right or one cell down${
        diagonal ? ', or one cell to the right and down at once' : ''
      }. Return ${GRID_GOALS[goal]}, both ends included.${blocked ? ` The first and the last cell can be entered. If there is no way, return ${goal === 'ways' ? '0' : '`None`'}.` : ''}

      There are at most 90 rows and 90 columns; numbers are from -100 to 100.`,
    reference(grid: (number | null)[][]) {
      const better = (a: number, b: number) => (goal === 'smallest' ? a < b : a > b);
      const best: { sum: number; ways: number }[][] = [];
      grid.forEach((cells, row) => {
        best.push([]);
        cells.forEach((cell, column) => {
          const from = [best[row - 1]?.[column], best[row]![column - 1], diagonal ? best[row - 1]?.[column - 1] : undefined].filter(
            (one) => one !== undefined,
          );
          let made = row + column === 0 ? { sum: 0, ways: 1 } : undefined;
          for (const { sum, ways } of from) {
            if (ways === -1) continue;
            if (!made || better(sum, made.sum)) made = { sum, ways };
            else if (sum === made.sum) made = { sum, ways: (made.ways + ways) % PRIME };
          }
          // Ways -1: cannot be reached.
          best[row]!.push(cell === null || !made ? { sum: 0, ways: -1 } : { sum: made.sum + cell, ways: made.ways });
        });
      });
      const { sum, ways } = best.at(-1)!.at(-1)!;
      if (ways === -1) return goal === 'ways' ? 0 : null;
      return goal === 'ways' ? ways : sum;
    },
    python: `
      def solve(grid):
          best = {}
          for r, row in enumerate(grid):
              for c, cell in enumerate(row):
                  if cell is None:
                      continue
                  if r == 0 and c == 0:
                      best[0, 0] = (cell, 1)
                      continue
                  before = [best[at] for at in [(r - 1, c), (r, c - 1)${diagonal ? ', (r - 1, c - 1)' : ''}] if at in best]
                  if before:
                      top = ${goal === 'smallest' ? 'min' : 'max'}(total for total, ways in before)
                      best[r, c] = (top + cell, sum(ways for total, ways in before if total == top) % ${PRIME})
          end = (len(grid) - 1, len(grid[0]) - 1)
          ${goal === 'ways' ? 'return best[end][1] if end in best else 0' : 'return best[end][0] if end in best else None'}`,
    mistakes: [
      [goal === 'ways' ? 'if total == top)' : '(total for total', goal === 'ways' ? 'if True)' : '(abs(total) for total'],
      ['(r - 1, c), (r, c - 1)', '(r - 1, c), (r, c - 1), (r - 1, c - 1), (r - 1, c + 1)'],
    ],
    slow: [
      `
      def solve(grid):
          found = []
          def walk(r, c, total):
              if r >= len(grid) or c >= len(grid[0]) or grid[r][c] is None:
                  return
              total += grid[r][c]
              if (r, c) == (len(grid) - 1, len(grid[0]) - 1):
                  found.append(total)
                  return
              walk(r + 1, c, total)
              walk(r, c + 1, total)
              ${diagonal ? 'walk(r + 1, c + 1, total)' : ''}
          walk(0, 0, 0)
          ${
            goal === 'ways'
              ? `return found.count(max(found)) % ${PRIME} if found else 0`
              : `return ${goal === 'largest' ? 'max' : 'min'}(found, default=None)`
          }`,
    ],
    inputs: (random) => [
      [
        [
          [1, 3, 1],
          [1, 5, 1],
          [4, 2, 1],
        ],
      ],
      [
        [
          [2, -1, 0],
          [0, 0, -1],
        ],
      ],
      [sums(random, 4, 5, blocked, 3)],
      [[[7]]],
      [[[1, 2, -3, 4]]],
      [[[1], [-2], [3]]],
      [
        blocked
          ? [
              [1, null],
              [null, 1],
            ]
          : [
              [0, 0, 0],
              [0, 0, 0],
              [0, 0, 0],
            ],
      ],
      ...times(10, () => [sums(random, random.integer(4, 12), random.integer(4, 12), blocked, goal === 'ways' ? 1 : 9)]),
      [sums(random, 90, 90, blocked, goal === 'ways' ? 1 : 100)],
    ],
  }),
);

function sums(random: SeededRandom, rows: number, columns: number, blocked: boolean, limit: number): Json {
  // For many ways with the same sum.
  const ties = limit === 1;
  const cell = (row: number, column: number) =>
    blocked && row + column > 0 && row + column < rows + columns - 2 && random.next() < 0.12
      ? null
      : random.integer(ties ? 0 : -limit, limit);
  return times(rows, (row) => times(columns, (column) => cell(row, column)));
}
