import type { SeededRandom } from '@palestra/environment-kit';
import { combine, defineFamily, integers, type Json, text, times } from './family.ts';

const RELATIONS = {
  sum: { says: '`a + b` is at most `k`', python: 'a + b <= k', test: (a: number, b: number, k: number) => a + b <= k },
  close: {
    says: '`a` and `b` differ by at most `k`',
    python: 'abs(a - b) <= k',
    test: (a: number, b: number, k: number) => Math.abs(a - b) <= k,
  },
  divisible: {
    says: '`a + b` is divisible by `k`',
    python: '(a + b) % k == 0',
    test: (a: number, b: number, k: number) => (a + b) % k === 0,
  },
  apart: {
    says: '`a` and `b` differ by exactly `k`',
    python: 'abs(a - b) == k',
    test: (a: number, b: number, k: number) => Math.abs(a - b) === k,
  },
} as const;
const PLACES = {
  any: '',
  even: ' whose places in the list differ by an even number',
  different: ' of different numbers (`a` is not `b`)',
} as const;

export const pairs = defineFamily(
  'pairs',
  combine({ relation: ['sum', 'close', 'divisible', 'apart'], places: ['any', 'even', 'different'] } as const),
  ({ relation, places }) => {
    const { says, python, test } = RELATIONS[relation];
    return {
      level: places === 'any' ? 3 : 4,
      parameters: 'numbers, k',
      statement: `
        Count the pairs \`a\`, \`b\` of elements of \`numbers\` at two different places, \`a\` before \`b\`,${PLACES[places]} for which ${says}.

        There are at most 20,000 numbers from 0 to 100,000, and \`k\` is from ${relation === 'divisible' ? 1 : 0} to 200,000.`,
      // Counts by value: how many partners each value has.
      reference(numbers: number[], k: number) {
        const countPairs = (list: number[]) => {
          const sorted = list.toSorted((a, b) => a - b);
          const below = (limit: number) => {
            let [from, to] = [0, sorted.length];
            while (from < to) {
              const middle = (from + to) >> 1;
              if (sorted[middle]! <= limit) from = middle + 1;
              else to = middle;
            }
            return from;
          };
          const rests = new Map<number, number>();
          if (relation === 'divisible') for (const number of list) rests.set(number % k, (rests.get(number % k) ?? 0) + 1);
          const equal = (value: number) => below(value) - below(value - 1);
          let ordered = 0;
          for (const number of list) {
            if (relation === 'sum') ordered += below(k - number);
            else if (relation === 'close') ordered += below(number + k) - below(number - k - 1);
            else if (relation === 'divisible') ordered += rests.get((k - (number % k)) % k) ?? 0;
            else ordered += k === 0 ? equal(number) : equal(number + k) + equal(number - k);
            if (test(number, number, k)) ordered -= 1;
            if (places === 'different' && test(number, number, k)) ordered -= equal(number) - 1;
          }
          return ordered / 2;
        };
        if (places !== 'even') return countPairs(numbers);
        return [0, 1].reduce((sum, rest) => sum + countPairs(numbers.filter((_, index) => index % 2 === rest)), 0);
      },
      python: `
        from collections import Counter

        def count(numbers, k):
            ${
              {
                sum: `ordered = sorted(numbers)
            low, high, total = 0, len(ordered) - 1, 0
            while low < high:
                if ordered[low] + ordered[high] <= k:
                    total += high - low
                    low += 1
                else:
                    high -= 1
            return total`,
                close: `ordered = sorted(numbers)
            low = total = 0
            for high in range(len(ordered)):
                while ordered[high] - ordered[low] > k:
                    low += 1
                total += high - low
            return total`,
                divisible: `rests = Counter()
            total = 0
            for number in numbers:
                total += rests[-number % k]
                rests[number % k] += 1
            return total`,
                apart: `counts = Counter(numbers)
            if k == 0:
                return sum(n * (n - 1) // 2 for n in counts.values())
            return sum(n * counts[number + k] for number, n in list(counts.items()))`,
              }[relation]
            }

        def solve(numbers, k):
            ${
              {
                any: 'return count(numbers, k)',
                even: 'return count(numbers[0::2], k) + count(numbers[1::2], k)',
                different: `total = count(numbers, k)
            for a, n in Counter(numbers).items():
                if ${python.replaceAll(/\bb\b/g, 'a')}:
                    total -= n * (n - 1) // 2
            return total`,
              }[places]
            }`,
      mistakes: [
        {
          sum: ['<= k:\n', '< k:\n'],
          close: ['> k:\n', '>= k and low < high:\n'],
          divisible: ['-number % k', 'number % k'],
          apart: ['n * counts[number + k]', 'counts[number + k]'],
        }[relation] as [string, string],
        ...(places === 'different' ? [['total -= n * (n - 1) // 2', 'total -= n'] as [string, string]] : []),
      ],
      slow: [
        `
        def solve(numbers, k):
            total = 0
            for first, a in enumerate(numbers):
                for b in numbers[first + ${places === 'even' ? '2::2' : '1:'}]:
                    if ${python}${places === 'different' ? ' and a != b' : ''}:
                        total += 1
            return total`,
      ],
      inputs: (random) => [
        [[1, 3, 2, 3, 5], 4],
        [[4, 4, 4], 8],
        [integers(random, 10, 0, 12), random.integer(2, 9)],
        [[], 1],
        [[6], 6],
        [[2, 2, 2, 2, 1], relation === 'divisible' ? 1 : 0],
        ...times(8, () => [integers(random, random.integer(10, 40), 0, 20), random.integer(2, 9) + (relation === 'sum' ? 10 : 0)]),
        [integers(random, 20_000, 0, 100_000), { sum: 90_000, close: 40_000, divisible: 6, apart: 3 }[relation]],
        [integers(random, 20_000, 0, 300), { sum: 200, close: 50, divisible: 4, apart: 5 }[relation]],
      ],
    };
  },
);

const TIES = {
  standard: 'Players with equal scores share the best of their places, and the places after it stay free: 1, 2, 2, 4',
  modified: 'Players with equal scores share the worst of their places, and the places before it stay free: 1, 3, 3, 4',
  dense: 'Players with equal scores share a place, and the next score gets the next place: 1, 2, 2, 3',
  ordinal: 'Players with equal scores are ordered by name (as Python compares texts) and get different places: 1, 2, 3, 4',
} as const;

export const rankings = defineFamily(
  'rankings',
  combine({ ties: ['standard', 'modified', 'dense', 'ordinal'], best: ['highest', 'lowest'], listed: ['given', 'ranked'] } as const),
  ({ ties, best, listed }) => ({
    level: listed === 'given' ? 1 : 2,
    parameters: 'players',
    statement: `
      \`players\` is a list of pairs [name, score] with different names. The ${best} score has place 1. ${TIES[ties]}. Return ${
        listed === 'given'
          ? 'the list of the places, in the order of `players`'
          : 'the list of texts "place. name (score)", for example "2. Ada (17)", ordered by place and, for equal places, by name (as Python compares texts)'
      }.

      There are at most 3000 players.`,
    reference(players: [string, number][]) {
      const place = ([name, score]: [string, number]) => {
        const better = players.filter(([, other]) => (best === 'highest' ? other > score : other < score));
        if (ties === 'standard') return better.length + 1;
        if (ties === 'dense') return new Set(better.map(([, other]) => other)).size + 1;
        const equal = players.filter(([, other]) => other === score);
        return better.length + (ties === 'modified' ? equal.length : equal.filter(([other]) => other <= name).length);
      };
      if (listed === 'given') return players.map(place);
      return players
        .map((player) => ({ place: place(player), name: player[0], score: player[1] }))
        .toSorted((a, b) => a.place - b.place || (a.name < b.name ? -1 : 1))
        .map(({ place: at, name, score }) => `${at}. ${name} (${score})`);
    },
    python: `
      def solve(players):
          ordered = sorted(players, key=lambda player: (${best === 'highest' ? '-player[1]' : 'player[1]'}, player[0]))
          places = {}
          start = 0
          group = 0
          while start < len(ordered):
              end = start
              while end < len(ordered) and ordered[end][1] == ordered[start][1]:
                  end += 1
              group += 1
              for at in range(start, end):
                  places[ordered[at][0]] = ${{ standard: 'start + 1', modified: 'end', dense: 'group', ordinal: 'at + 1' }[ties]}
              start = end
          ${
            listed === 'given'
              ? 'return [places[name] for name, score in players]'
              : 'return [f"{places[name]}. {name} ({score})" for name, score in ordered]'
          }`,
    mistakes: [
      [best === 'highest' ? '-player[1]' : 'player[1]', best === 'highest' ? 'player[1]' : '-player[1]'],
      [
        { standard: '= start + 1', modified: '= end', dense: '= group', ordinal: '= at + 1' }[ties],
        ties === 'ordinal' ? '= start + 1' : '= at + 1',
      ],
    ],
    inputs: (random) => [
      [
        [
          ['Ada', 7],
          ['Ken', 9],
          ['Bob', 7],
          ['Eve', 1],
        ],
      ],
      [
        [
          ['x', 3],
          ['b', 3],
          ['a', 3],
        ],
      ],
      [scores(random, 5, 4)],
      [[]],
      [[['solo', -2]]],
      [
        [
          ['b', 0],
          ['a', 0],
          ['c', -5],
          ['B', 0],
        ],
      ],
      ...times(6, () => [scores(random, random.integer(4, 25), random.pick([3, 10]))]),
      [scores(random, 900, 60)],
    ],
  }),
);

const scores = (random: SeededRandom, count: number, range: number): Json =>
  times(count, (index) => [`${text(random, 2, 'abcdeXY')}${index}`, random.integer(-range, range)]);
