import type { SeededRandom } from '@palestra/environment-kit';
import { combine, defineFamily, type Json, times } from './family.ts';

const COVERED = {
  merged: 'the list of the maximal stretches of covered numbers, as pairs of the same kind as the intervals, in ascending order',
  total: 'how many numbers are covered by at least one interval',
  once: 'how many numbers are covered by exactly one interval',
  gaps: 'the list of the maximal stretches of numbers that no interval covers between the smallest and the largest covered number, as pairs of the same kind as the intervals, in ascending order',
  deepest:
    'the pair [the largest number of intervals that cover the same number, the smallest number that this many intervals cover]; [0, 0] without intervals',
} as const;

export const coveredNumbers = defineFamily(
  'covered_numbers',
  combine({ closed: [true, false], result: ['merged', 'total', 'once', 'gaps', 'deepest'], long: [false, true] } as const).filter(
    ({ result, long }) => !long || result !== 'deepest',
  ),
  ({ closed, result, long }) => ({
    level: result === 'total' || result === 'merged' ? 2 : 3,
    parameters: 'intervals',
    statement: `
      An interval [a, b] covers the whole numbers from a to b, ${closed ? 'both included' : 'a included and b not'}.${
        long ? ' Intervals that cover fewer than three numbers are ignored.' : ''
      } Return ${COVERED[result]}.

      There are at most 8000 intervals in any order, with a ${closed ? '≤' : '<'} b, from -1,000,000,000 to 1,000,000,000.`,
    reference(given: [number, number][]) {
      const events = new Map<number, number>();
      for (const [a, b] of given) {
        const end = closed ? b + 1 : b;
        if (long && end - a < 3) continue;
        events.set(a, (events.get(a) ?? 0) + 1);
        events.set(end, (events.get(end) ?? 0) - 1);
      }
      const points = [...events.keys()].toSorted((a, b) => a - b);
      const shown = closed ? 1 : 0;
      const stretches: { from: number; to: number; depth: number }[] = [];
      let depth = 0;
      points.forEach((point, index) => {
        depth += events.get(point)!;
        const to = points[index + 1];
        if (to !== undefined) stretches.push({ from: point, to, depth });
      });
      const joined = (covered: boolean) =>
        stretches
          .filter((stretch) => stretch.depth > 0 === covered)
          .reduce<[number, number][]>((list, { from, to }) => {
            if (list.at(-1)?.[1] === from) list.at(-1)![1] = to;
            else list.push([from, to]);
            return list;
          }, [])
          .map(([from, to]) => [from, to - shown]);
      const size = (test: (depth: number) => boolean) =>
        stretches.reduce((sum, { from, to, depth: at }) => sum + (test(at) ? to - from : 0), 0);
      const most = Math.max(0, ...stretches.map((stretch) => stretch.depth));
      return {
        merged: () => joined(true),
        gaps: () => joined(false),
        total: () => size((at) => at > 0),
        once: () => size((at) => at === 1),
        deepest: () => [most, stretches.find((stretch) => stretch.depth === most)?.from ?? 0],
      }[result]();
    },
    python: `
      def solve(intervals):
          ranges = sorted((a, b${closed ? ' + 1' : ''}) for a, b in intervals)
          ${long ? 'ranges = [(a, b) for a, b in ranges if b - a >= 3]' : ''}
          ${
            {
              merged: merging(`return [[a, b${closed ? ' - 1' : ''}] for a, b in merged]`),
              gaps: merging(`return [[first[1], second[0]${closed ? ' - 1' : ''}] for first, second in zip(merged, merged[1:])]`),
              total: merging('return sum(b - a for a, b in merged)'),
              once: sweeping(`total = 0
          for (point, _), (after, _) in zip(changes, changes[1:]):
              depth += delta[point]
              if depth == 1:
                  total += after - point
          return total`),
              deepest: sweeping(`best = [0, 0]
          for point, _ in changes:
              depth += delta[point]
              if depth > best[0]:
                  best = [depth, point]
          return best`),
            }[result]
          }`,
    mistakes: [
      ...(closed ? [['b + 1)', 'b)'] as [string, string]] : [['(a, b)', '(a, b + 1)'] as [string, string]]),
      ...(long ? [['>= 3', '> 3'] as [string, string]] : []),
      {
        merged: ['a <= merged[-1][1]', 'a < merged[-1][1]'],
        gaps: ['a <= merged[-1][1]', 'a < merged[-1][1]'],
        total: ['max(merged[-1][1], b)', 'b'],
        once: ['depth == 1', 'depth >= 1'],
        deepest: ['depth > best[0]', 'depth >= best[0]'],
      }[result] as [string, string],
    ],
    inputs: (random) => [
      [
        [
          [1, 4],
          [3, 6],
          [9, 12],
        ],
      ],
      [
        [
          [5, 8],
          [1, 4],
          [8, 12],
          [20, 25],
        ],
      ],
      [someIntervals(random, 5, 20)],
      [[]],
      [[[0, 7]]],
      [
        [
          [-5, 5],
          [-2, 2],
          [-5, 5],
        ],
      ],
      [
        [
          [0, 2],
          [2, 4],
          [4, 7],
          [8, 11],
          [12, 13],
        ],
      ],
      ...times(7, () => [someIntervals(random, random.integer(5, 25), 100)]),
      [someIntervals(random, 600, 3000)],
      [someIntervals(random, 8000, 1_000_000_000)],
    ],
  }),
);

function merging(rest: string): string {
  return `merged = []
          for a, b in ranges:
              if merged and a <= merged[-1][1]:
                  merged[-1][1] = max(merged[-1][1], b)
              else:
                  merged.append([a, b])
          ${rest}`;
}

function sweeping(rest: string): string {
  return `delta = {}
          for a, b in ranges:
              delta[a] = delta.get(a, 0) + 1
              delta[b] = delta.get(b, 0) - 1
          changes = sorted(delta.items())
          depth = 0
          ${rest}`;
}

const someIntervals = (random: SeededRandom, count: number, limit: number): Json =>
  times(count, () => {
    const from = random.integer(-limit, limit - 2);
    return [from, Math.min(limit, from + 1 + random.integer(0, Math.ceil((limit * 2) / Math.min(count, 900))))];
  });

const OBJECTIVES = {
  count: { says: 'the largest possible number of accepted requests', python: '1' },
  time: { says: 'the largest possible total duration of the accepted requests', python: 'end - start' },
  value: { says: 'the largest possible total value of the accepted requests', python: 'value' },
} as const;

export const bookings = defineFamily(
  'bookings',
  combine({ objective: ['count', 'time', 'value'], gap: [0, 3], most: [null, 4] } as const).filter(
    ({ objective, most }) => objective !== 'count' || most === null,
  ),
  ({ objective, gap, most }) => ({
    level: objective === 'count' && most === null ? 3 : 4,
    parameters: 'requests',
    statement: `
      A room can be booked. Each request is a list [start, end, value] with start < end. Accept some of them such that no two overlap: ${
        gap === 0
          ? 'a request may start at the moment another one ends'
          : `between the end of one and the start of the next there must be at least ${gap} units of time to clean`
      }.${most === null ? '' : ` At most ${most} requests may be accepted.`} Return ${OBJECTIVES[objective].says}.

      There are at most ${most === null ? '20,000' : '6000'} requests; times are from 0 to 10,000,000 and values from 1 to 1000.`,
    reference(requests: [number, number, number][]) {
      const worth = ([start, end, value]: [number, number, number]) => ({ count: 1, time: end - start, value })[objective];
      const ordered = requests.toSorted((a, b) => a[1] - b[1]);
      // best[i]: with the first i requests. The largest i whose requests end early enough is found by a pointer over sorted starts.
      const byStart = ordered.map((request, index) => ({ start: request[0], index })).toSorted((a, b) => a.start - b.start);
      const before = ordered.map(() => 0);
      let pointer = 0;
      for (const { start, index } of byStart) {
        while (pointer < ordered.length && ordered[pointer]![1] + gap <= start) pointer += 1;
        before[index] = pointer;
      }
      let best = ordered.map(() => 0).concat(0);
      for (let round = 0; round < (most ?? 1); round += 1) {
        const next = [0];
        ordered.forEach((request, index) => {
          const rest = (most === null ? next : best)[before[index]!]!;
          next.push(Math.max(next[index]!, rest + worth(request)));
        });
        best = next;
      }
      return best.at(-1)!;
    },
    python: `
      from bisect import bisect_right

      def solve(requests):
          ordered = sorted(requests, key=lambda request: request[1])
          ends = [request[1] for request in ordered]
          before = [bisect_right(ends, start - ${gap}) for start, end, value in ordered]
          ${
            most === null
              ? `best = [0]
          for index, (start, end, value) in enumerate(ordered):
              best.append(max(best[index], best[before[index]] + ${OBJECTIVES[objective].python}))
          return best[-1]`
              : `best = [0] * (len(ordered) + 1)
          for _ in range(${most}):
              following = [0]
              for index, (start, end, value) in enumerate(ordered):
                  following.append(max(following[index], best[before[index]] + ${OBJECTIVES[objective].python}))
              best = following
          return best[-1]`
          }`,
    mistakes: [
      [`start - ${gap}`, `start - ${gap + 1}`],
      ['request[1])\n', 'request[0])\n'],
      ...(most === null ? [] : [[`range(${most})`, `range(${most - 1})`] as [string, string]]),
    ],
    slow: [
      `
      def solve(requests):
          ordered = sorted(requests, key=lambda request: request[1])
          best = [[0] * ${most === null ? 1 : most + 1} for _ in range(len(ordered) + 1)]
          for index, (start, end, value) in enumerate(ordered):
              before = 0
              for other in range(index):
                  if ordered[other][1] + ${gap} <= start:
                      before = other + 1
              best[index + 1] = list(best[index])
              for used in range(${most === null ? '1' : `1, ${most + 1}`}):
                  best[index + 1][used] = max(best[index][used], best[before][${most === null ? '0' : 'used - 1'}] + ${OBJECTIVES[objective].python})
          return best[-1][-1]`,
    ],
    inputs: (random) => [
      [
        [
          [1, 3, 5],
          [3, 6, 4],
          [2, 9, 8],
        ],
      ],
      [
        [
          [0, 10, 3],
          [10, 20, 3],
          [23, 30, 1],
          [5, 24, 7],
        ],
      ],
      [requests(random, 6, 30)],
      [[]],
      [[[4, 5, 9]]],
      [
        [
          [0, 1, 1],
          [1, 2, 1],
          [4, 5, 1],
          [8, 9, 1],
          [12, 13, 1],
          [16, 17, 1],
        ],
      ],
      ...times(12, () => [requests(random, random.integer(5, 30), 120)]),
      [requests(random, most === null ? 20_000 : 6000, 10_000_000)],
    ],
  }),
);

const requests = (random: SeededRandom, count: number, limit: number): Json =>
  times(count, () => {
    const start = random.integer(0, limit - 2);
    return [start, Math.min(limit, start + 1 + random.integer(0, Math.ceil(limit / 6))), random.integer(1, 100)];
  });
