import type { SeededRandom } from '@palestra/environment-kit';
import { combine, defineFamily, type Json, times } from './family.ts';

const ROUTE_COSTS = {
  sum: 'the sum of the lengths of its roads',
  longest: 'the length of its longest road (0 without roads)',
  tolls:
    'the sum of the lengths of its roads, plus 10 for each place with an even number that it passes on the way, its first and last place excluded',
  voucher: 'the sum of the lengths of its roads, without the longest of them: one road is free',
} as const;

export const routes = defineFamily(
  'routes',
  combine({ cost: ['sum', 'longest', 'tolls', 'voucher'], oneWay: [true, false], result: ['all', 'farthest'] } as const),
  ({ cost, oneWay, result }) => ({
    level: cost === 'voucher' || cost === 'tolls' ? 5 : 4,
    parameters: 'n, roads',
    statement: `
      Places have the numbers 0 to n - 1. A road [a, b, length] can be used from a to b${oneWay ? '' : ' and from b to a'}. The cost of a route is ${
        ROUTE_COSTS[cost]
      }. A route begins at place 0; the route from 0 to 0 without roads costs 0. Return ${
        result === 'all'
          ? 'the list of the smallest costs of a route to each place, from 0 to n - 1, with -1 for places that cannot be reached'
          : 'the pair [cost, place] of the place whose cheapest route costs most among those that can be reached, the smallest place if there are several'
      }.

      \`n\` is from 1 to 3000, there are at most 9000 roads, and lengths are from 0 to 10,000.`,
    reference(n: number, roads: [number, number, number][]) {
      const next = times(n, (): [number, number][] => []);
      for (const [a, b, length] of roads) {
        next[a]!.push([b, length]);
        if (!oneWay) next[b]!.push([a, length]);
      }
      // Label correcting with a queue over states (place, voucher used); small enough in JavaScript.
      const layers = cost === 'voucher' ? 2 : 1;
      const best = times(n * layers, () => Infinity);
      for (let layer = 0; layer < layers; layer += 1) best[layer * n] = 0;
      const queue = new Set([0, ...(layers === 2 ? [n] : [])]);
      for (const state of queue) {
        queue.delete(state);
        const [place, layer] = [state % n, Math.floor(state / n)];
        const toll = cost === 'tolls' && place !== 0 && place % 2 === 0 ? 10 : 0;
        const relax = (target: number, value: number) => {
          if (value >= best[target]!) return;
          best[target] = value;
          queue.delete(target);
          queue.add(target);
        };
        for (const [to, length] of next[place]!) {
          relax(layer * n + to, cost === 'longest' ? Math.max(best[state]!, length) : best[state]! + length + toll);
          if (layers === 2 && layer === 0) relax(n + to, best[state]!);
        }
      }
      const costs = times(n, (place) => best[(layers - 1) * n + place]!).map((value) => (value === Infinity ? -1 : value));
      if (result === 'all') return costs;
      const most = Math.max(...costs);
      return [most, costs.indexOf(most)];
    },
    python: `
      from heapq import heappush, heappop

      def solve(n, roads):
          roads_from = [[] for _ in range(n)]
          for a, b, length in roads:
              roads_from[a].append((b, length))
              ${oneWay ? 'pass' : 'roads_from[b].append((a, length))'}
          best = {}
          heap = [(0, 0, 0)]
          while heap:
              cost, place, used = heappop(heap)
              if (place, used) in best:
                  continue
              best[place, used] = cost
              toll = ${cost === 'tolls' ? '10 if place > 0 and place % 2 == 0 else 0' : '0'}
              for target, length in roads_from[place]:
                  if (target, used) not in best:
                      heappush(heap, (${cost === 'longest' ? 'max(cost, length)' : 'cost + length + toll'}, target, used))
                  ${cost === 'voucher' ? 'if not used:\n                      heappush(heap, (cost, target, 1))' : ''}
          costs = [min(best.get((place, 0), 10**18), best.get((place, 1), 10**18)) for place in range(n)]
          costs = [-1 if cost == 10**18 else cost for cost in costs]
          ${result === 'all' ? 'return costs' : 'most = max(costs)\n          return [most, costs.index(most)]'}`,
    mistakes: [
      [
        { sum: 'cost + length + toll', longest: 'max(cost, length)', tolls: 'place > 0 and ', voucher: 'if not used:' }[cost],
        { sum: 'cost + max(length, 1)', longest: 'cost + length', tolls: '', voucher: 'if True:' }[cost],
      ],
      oneWay ? ['pass', 'roads_from[b].append((a, length))'] : ['roads_from[b].append((a, length))', 'pass'],
    ],
    slow: [
      `
      def solve(n, roads):
          roads = [tuple(road) for road in roads]${oneWay ? '' : ' + [(b, a, length) for a, b, length in roads]'}
          best = [[10**18] * n for _ in range(2)]
          best[0][0] = best[1][0] = 0
          for _ in range(2 * n):
              for used in range(${cost === 'voucher' ? '2' : '1'}):
                  for a, b, length in roads:
                      toll = ${cost === 'tolls' ? '10 if a > 0 and a % 2 == 0 else 0' : '0'}
                      best[used][b] = min(best[used][b], ${cost === 'longest' ? 'max(best[used][a], length)' : 'best[used][a] + length + toll'})
                      if used == 0:
                          best[1][b] = min(best[1][b], best[0][a])
          costs = [-1 if c >= 10**18 else c for c in best[${cost === 'voucher' ? '1' : '0'}]]
          ${result === 'all' ? 'return costs' : 'return [max(costs), costs.index(max(costs))]'}`,
    ],
    inputs: (random) => [
      [
        4,
        [
          [0, 1, 5],
          [1, 2, 3],
          [0, 2, 9],
          [2, 0, 1],
        ],
      ],
      [
        5,
        [
          [0, 2, 4],
          [2, 3, 6],
          [3, 1, 2],
          [0, 3, 12],
        ],
      ],
      someRoads(random, 6, 9, 20),
      [1, []],
      [
        3,
        [
          [2, 1, 0],
          [1, 1, 7],
        ],
      ],
      [
        5,
        [
          [0, 2, 0],
          [2, 4, 0],
          [4, 0, 0],
          [4, 3, 0],
          [3, 1, 1],
          [0, 3, 15],
        ],
      ],
      ...times(8, () => someRoads(random, random.integer(6, 30), random.integer(10, 70), random.pick([5, 40, 1000]))),
      someRoads(random, 3000, 9000, 10_000),
      [3000, times(2999, (index) => [2998 - index, 2999 - index, (index * 37) % 101])],
    ],
  }),
);

const someRoads = (random: SeededRandom, n: number, count: number, longest: number): Json[] => [
  n,
  times(count, () => [random.integer(0, n - 1), random.integer(0, n - 1), random.integer(0, longest)]),
];
