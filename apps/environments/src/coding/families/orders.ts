import type { SeededRandom } from '@palestra/environment-kit';
import { combine, defineFamily, integers, type Json, times } from './family.ts';

const ORDER_RESULTS = {
  smallest: 'the order that has, at every place, the smallest task that can be next',
  largest: 'the order that has, at every place, the largest task that can be next',
  rounds: 'the list of rounds: in each round all tasks are done whose predecessors were done in earlier rounds, in ascending order',
  finish:
    'the list of the times at which the tasks 0 to n - 1 end, if each begins as early as possible and any number of tasks can run at the same time, from time 0 on',
  chain: 'the largest total duration of a chain of tasks in which each is a predecessor of the next one',
  slack:
    'the list, in ascending order, of the tasks that would delay the end of the whole work if they took one unit of time longer; each task begins as early as possible, and any number of tasks can run at the same time',
} as const;

export const buildOrders = defineFamily(
  'build_orders',
  combine({ result: ['smallest', 'largest', 'rounds', 'finish', 'chain', 'slack'], before: [true, false] } as const).filter(
    ({ result, before }) => before || (result !== 'chain' && result !== 'slack'),
  ),
  ({ result, before }) => {
    const none = result === 'chain' ? '-1' : 'an empty list';
    return {
      level: result === 'slack' ? 4 : 3,
      parameters: 'durations, rules',
      statement: `
        The tasks 0 to n - 1 take the times in the list \`durations\`. A rule [a, b] says that ${
          before
            ? 'a is a predecessor of b: b can only begin when a is done'
            : 'a needs b, so b is a predecessor of a: a can only begin when b is done'
        }. Rules may be repeated. Return ${ORDER_RESULTS[result]}. If the rules contradict each other (a task would have to be done before itself), return ${none}.

        There are at most 4000 tasks and 8000 rules; durations are from 1 to 100.`,
      reference(durations: number[], rules: [number, number][]) {
        const n = durations.length;
        const after = times(n, (): number[] => []);
        const missing = times(n, () => 0);
        for (const [x, y] of rules) {
          const [first, second] = before ? [x, y] : [y, x];
          after[first]!.push(second);
          missing[second]! += 1;
        }
        const rounds: number[][] = [];
        const left = [...missing];
        for (let round = times(n, (task) => task).filter((task) => left[task] === 0); round.length > 0;) {
          rounds.push(round);
          const next: number[] = [];
          for (const task of round) for (const later of after[task]!) if ((left[later]! -= 1) === 0) next.push(later);
          round = next.toSorted((a, b) => a - b);
        }
        const topological = rounds.flat();
        if (topological.length < n) return result === 'chain' ? -1 : [];
        const end = [...durations];
        for (const task of topological)
          for (const later of after[task]!) end[later] = Math.max(end[later]!, end[task]! + durations[later]!);
        const total = Math.max(0, ...end);
        const tail = times(n, () => 0);
        for (const task of topological.toReversed())
          for (const later of after[task]!) tail[task] = Math.max(tail[task]!, tail[later]! + durations[later]!);
        const greedy = (sign: 1 | -1) => {
          const waits = [...missing];
          const ready = new Set(times(n, (task) => task).filter((task) => waits[task] === 0));
          const order: number[] = [];
          while (ready.size > 0) {
            const task = sign * Math.min(...[...ready].map((one) => sign * one));
            ready.delete(task);
            order.push(task);
            for (const later of after[task]!) if ((waits[later]! -= 1) === 0) ready.add(later);
          }
          return order;
        };
        return {
          smallest: () => greedy(1),
          largest: () => greedy(-1),
          rounds: () => rounds,
          finish: () => end,
          chain: () => total,
          slack: () => times(n, (task) => task).filter((task) => end[task]! + tail[task]! === total),
        }[result]();
      },
      python: `
        from heapq import heapify, heappush, heappop

        def solve(durations, rules):
            n = len(durations)
            after = [[] for _ in range(n)]
            missing = [0] * n
            for ${before ? 'first, second' : 'second, first'} in rules:
                after[first].append(second)
                missing[second] += 1
            sign = ${result === 'largest' ? '-1' : '1'}
            ready = [sign * task for task in range(n) if missing[task] == 0]
            heapify(ready)
            start = [0] * n
            round_of = [0] * n
            order = []
            while ready:
                task = sign * heappop(ready)
                order.append(task)
                for later in after[task]:
                    start[later] = max(start[later], start[task] + durations[task])
                    round_of[later] = max(round_of[later], round_of[task] + 1)
                    missing[later] -= 1
                    if missing[later] == 0:
                        heappush(ready, sign * later)
            if len(order) < n:
                return ${result === 'chain' ? '-1' : '[]'}
            end = [start[task] + durations[task] for task in range(n)]
            ${
              {
                smallest: 'return order',
                largest: 'return order',
                rounds: `rounds = [[] for _ in range(max(round_of) + 1 if n else 0)]
            for task in range(n):
                rounds[round_of[task]].append(task)
            return rounds`,
                finish: 'return end',
                chain: 'return max(end) if n else 0',
                slack: `total = max(end) if n else 0
            latest = [total] * n
            for task in reversed(order):
                for later in after[task]:
                    latest[task] = min(latest[task], latest[later] - durations[later])
            return [task for task in range(n) if latest[task] == end[task]]`,
              }[result]
            }`,
      mistakes: [
        result === 'chain' || result === 'slack'
          ? ['start[task] + durations[task])', 'start[task] + 1)']
          : before
            ? ['first, second in rules', 'second, first in rules']
            : ['second, first in rules', 'first, second in rules'],
        [
          {
            smallest: 'heapify(ready)',
            largest: 'sign * later',
            rounds: 'max(round_of[later], round_of[task] + 1)',
            finish: 'max(start[later], start[task] + durations[task])',
            chain: 'return -1',
            slack: 'min(latest[task], latest[later] - durations[later])',
          }[result],
          {
            smallest: 'ready.reverse()',
            largest: 'later',
            rounds: 'round_of[task] + 1',
            finish: 'start[task] + durations[task]',
            chain: 'return 0',
            slack: 'latest[later] - durations[later]',
          }[result],
        ],
      ],
      inputs: (random) => [
        [
          [3, 2, 4, 1],
          [
            [0, 2],
            [1, 2],
            [2, 3],
          ],
        ],
        [
          [1, 1, 1],
          [
            [0, 1],
            [1, 0],
          ],
        ],
        rules(random, 6, 6),
        [[], []],
        [[5], []],
        [[5, 1], [[1, 1]]],
        [
          [2, 3, 9, 1, 1],
          [
            [4, 0],
            [4, 0],
            [0, 3],
          ],
        ],
        ...times(9, () => rules(random, random.integer(5, 30), random.integer(4, 50))),
        rules(random, 4000, 8000),
      ],
    };
  },
);

/** Rules without contradiction between tasks in random order. */
function rules(random: SeededRandom, n: number, count: number): Json[] {
  const order = random.shuffle(times(n, (task) => task));
  const made = times(count, () => {
    const [a, b] = [random.integer(0, n - 2), random.integer(0, n - 1)];
    return [order[Math.min(a, b)]!, order[Math.max(a, b)]!] as [number, number];
  }).filter(([a, b]) => a !== b);
  return [integers(random, n, 1, 100), random.next() < 0.5 ? made : made.map(([a, b]): [number, number] => [b, a])];
}

const TREE_RESULTS = {
  sums: 'the list of the sums of the values in the subtree of each node (the node itself and all below it)',
  paths: 'the list of the sums of the values on the path from the root to each node, both included',
  leaves: 'the list of the numbers of leaves (nodes without children) in the subtree of each node; a leaf counts itself',
  longest: 'the largest number of edges on a path between any two nodes',
  independent: 'the largest total value of a set of nodes that has no node together with its parent',
  smaller:
    'the list of the numbers of ancestors (parent, its parent and so on) of each node whose value is smaller than that of the node; here no branch is deeper than 60 nodes',
} as const;

export const trees = defineFamily(
  'trees',
  combine({ result: ['sums', 'paths', 'leaves', 'longest', 'independent', 'smaller'], ordered: [true, false] } as const),
  ({ result, ordered }) => ({
    level: result === 'longest' || result === 'independent' ? 4 : 3,
    parameters: 'parents, values',
    statement: `
      \`parents[i]\` is the parent of node i, or -1 for the root, and \`values[i]\` is its value. There is exactly one root. ${
        ordered
          ? 'Each parent has a smaller number than its children.'
          : 'Nodes are in any order: a parent may have a larger number than its children.'
      } Return ${TREE_RESULTS[result]}${TREE_RESULTS[result].startsWith('the list') ? ', in the order of the nodes' : ''}.

      There are 1 to 5000 nodes with values from 0 to 100${result === 'smaller' ? '' : '; a branch may be as deep as there are nodes'}.`,
    reference(parents: number[], values: number[]) {
      const n = parents.length;
      const children = times(n, (): number[] => []);
      parents.forEach((parent, node) => parent >= 0 && children[parent]!.push(node));
      const order = [parents.indexOf(-1)];
      for (const node of order) order.push(...children[node]!);
      const up = order.toReversed();
      const fold = <T>(make: (node: number, below: T[]) => T): T[] => {
        const made: T[] = [];
        for (const node of up)
          made[node] = make(
            node,
            children[node]!.map((child) => made[child]!),
          );
        return made;
      };
      const add = (numbers: number[]) => numbers.reduce((sum, number) => sum + number, 0);
      const root = order[0]!;
      switch (result) {
        case 'sums':
          return fold<number>((node, below) => values[node]! + add(below));
        case 'leaves':
          return fold<number>((_, below) => (below.length === 0 ? 1 : add(below)));
        case 'longest':
          return fold<{ deep: number; long: number }>((_, below) => {
            const [a = 0, b = 0] = below.map(({ deep }) => deep + 1).toSorted((x, y) => y - x);
            return { deep: a, long: Math.max(a + b, ...below.map(({ long }) => long)) };
          })[root]!.long;
        case 'independent': {
          const top = fold<{ taken: number; free: number }>((node, below) => ({
            taken: values[node]! + add(below.map(({ free }) => free)),
            free: add(below.map(({ taken, free }) => Math.max(taken, free))),
          }))[root]!;
          return Math.max(top.taken, top.free);
        }
        default: {
          const found = times(n, () => 0);
          for (const node of order) {
            if (result === 'paths') found[node] = values[node]! + (parents[node]! < 0 ? 0 : found[parents[node]!]!);
            else
              for (let above = parents[node]!; above >= 0; above = parents[above]!) found[node]! += values[above]! < values[node]! ? 1 : 0;
          }
          return found;
        }
      }
    },
    python: `
      def solve(parents, values):
          n = len(parents)
          ${
            ordered
              ? 'order = range(n)'
              : `children = [[] for _ in range(n)]
          for node, parent in enumerate(parents):
              if parent >= 0:
                  children[parent].append(node)
          order = [parents.index(-1)]
          for node in order:
              order.extend(children[node])`
          }
          ${
            {
              sums: `total = list(values)
          for node in reversed(order):
              if parents[node] >= 0:
                  total[parents[node]] += total[node]
          return total`,
              paths: `total = list(values)
          for node in order:
              if parents[node] >= 0:
                  total[node] += total[parents[node]]
          return total`,
              leaves: `total = [0] * n
          for node in reversed(order):
              total[node] = max(total[node], 1)
              if parents[node] >= 0:
                  total[parents[node]] += total[node]
          return total`,
              longest: `deep = [0] * n
          best = 0
          for node in reversed(order):
              parent = parents[node]
              if parent >= 0:
                  best = max(best, deep[parent] + deep[node] + 1)
                  deep[parent] = max(deep[parent], deep[node] + 1)
          return best`,
              independent: `taken = list(values)
          free = [0] * n
          for node in reversed(order):
              parent = parents[node]
              if parent >= 0:
                  taken[parent] += free[node]
                  free[parent] += max(taken[node], free[node])
          root = parents.index(-1)
          return max(taken[root], free[root])`,
              smaller: `result = []
          for node in range(n):
              above = parents[node]
              count = 0
              while above >= 0:
                  count += values[above] < values[node]
                  above = parents[above]
              result.append(count)
          return result`,
            }[result]
          }`,
    mistakes: [
      {
        sums: ['total[parents[node]] += total[node]', 'total[parents[node]] += values[node]'],
        paths: ['+= total[parents[node]]', '+= values[parents[node]]'],
        leaves: ['max(total[node], 1)', 'total[node] + 1'],
        longest: ['deep[parent] + deep[node] + 1', 'deep[node] + 1'],
        independent: ['max(taken[node], free[node])', 'taken[node]'],
        smaller: ['values[above] < values[node]', 'values[above] <= values[node]'],
      }[result] as [string, string],
    ],
    slow:
      result === 'sums'
        ? [
            `
      def solve(parents, values):
          children = [[] for _ in parents]
          for node, parent in enumerate(parents):
              if parent >= 0:
                  children[parent].append(node)
          total = list(values)
          def visit(node):
              for child in children[node]:
                  visit(child)
                  total[node] += total[child]
          visit(parents.index(-1))
          return total`,
          ]
        : [],
    inputs: (random) => [
      [
        [-1, 0, 0, 1, 1],
        [5, 3, 4, 2, 1],
      ],
      [
        [-1, 0, 1, 2],
        [1, 9, 2, 7],
      ],
      tree(random, 7, ordered, 7),
      [[-1], [3]],
      [times(12, (node) => (node === 0 ? -1 : 0)), times(12, (node) => node)],
      ...times(8, () => tree(random, random.integer(5, 40), ordered, random.integer(2, 40))),
      tree(random, 5000, ordered, result === 'smaller' ? 50 : 5000),
      [times(result === 'smaller' ? 60 : 5000, (node) => node - 1), times(result === 'smaller' ? 60 : 5000, (node) => (node * 13) % 100)],
    ],
  }),
);

function tree(random: SeededRandom, n: number, ordered: boolean, deepest: number): Json[] {
  const depth = [0];
  const parents = [-1];
  for (let node = 1; node < n; node += 1) {
    let parent = random.integer(Math.max(0, node - 1 - random.integer(0, 5)), node - 1);
    while (depth[parent]! >= deepest - 1) parent = parents[parent]!;
    parents.push(parent);
    depth.push(depth[parent]! + 1);
  }
  const values = integers(random, n, 0, 100);
  if (ordered) return [parents, values];
  const name = random.shuffle(times(n, (node) => node));
  const renamed = times(n, () => -1);
  parents.forEach((parent, node) => (renamed[name[node]!] = parent < 0 ? -1 : name[parent]!));
  return [renamed, values];
}
