import type { SeededRandom } from '@palestra/environment-kit';
import { combine, defineFamily, integers, type Json, times } from './family.ts';

const SUMS = {
  equal: { says: 'whose sum is exactly `k`', values: 'from -50 to 50', k: 'from -1000 to 1000' },
  divisible: { says: 'whose sum is divisible by `k`', values: 'from -1000 to 1000', k: 'from 1 to 1000' },
  xor: { says: 'whose bitwise exclusive or is `k`', values: 'from 0 to 1023', k: 'from 0 to 1023' },
  most: { says: 'whose sum is at most `k`', values: 'from 0 to 50', k: 'from 0 to 1,000,000' },
} as const;
const LENGTHS = { any: '', even: ' with an even number of elements', three: ' with at least three elements' } as const;

export const sublists = defineFamily(
  'sublists',
  combine({ sum: ['equal', 'divisible', 'xor', 'most'], lengths: ['any', 'even', 'three'] } as const),
  ({ sum, lengths }) => {
    const least = { any: 1, even: 2, three: 3 }[lengths];
    const values = { equal: [-50, 50], divisible: [-1000, 1000], xor: [0, 1023], most: [0, 50] }[sum] as [number, number];
    const wanted = (random: SeededRandom) =>
      sum === 'divisible'
        ? random.integer(2, 9)
        : sum === 'most'
          ? random.integer(20, 120)
          : sum === 'xor'
            ? random.integer(0, 7)
            : random.integer(-5, 12);
    const small = (random: SeededRandom): Json[] => [
      integers(random, random.integer(8, 40), sum === 'equal' || sum === 'divisible' ? -9 : 0, sum === 'xor' ? 7 : 9),
      wanted(random),
    ];
    return {
      level: lengths === 'any' ? 3 : 4,
      parameters: 'numbers, k',
      statement: `
        Count the contiguous sublists of \`numbers\`${LENGTHS[lengths]} ${SUMS[sum].says}. Sublists at different places count separately, also when they are equal; a sublist is not empty.

        There are at most 20,000 numbers ${SUMS[sum].values}, and \`k\` is ${SUMS[sum].k}.`,
      reference(numbers: number[], k: number) {
        const before = [0];
        for (const number of numbers) before.push(sum === 'xor' ? before.at(-1)! ^ number : before.at(-1)! + number);
        const key = (value: number) => (sum === 'divisible' ? ((value % k) + k) % k : value);
        const partner = (value: number) => (sum === 'equal' ? value - k : sum === 'xor' ? value ^ k : key(value));
        const sides = lengths === 'even' ? 2 : 1;
        const seen = [new Map<number, number>(), new Map<number, number>()];
        let [count, low] = [0, 0];
        for (const [end, value] of before.entries()) {
          const start = end - least;
          if (sum === 'most') {
            while (value - before[low]! > k) low += 1;
            if (start >= low) count += Math.floor((start - low) / sides) + 1;
          } else if (start >= 0) {
            const known = seen[start % sides]!;
            known.set(key(before[start]!), (known.get(key(before[start]!)) ?? 0) + 1);
            count += known.get(partner(value)) ?? 0;
          }
        }
        return count;
      },
      python:
        sum === 'most'
          ? `
        def solve(numbers, k):
            prefixes = [0]
            for number in numbers:
                prefixes.append(prefixes[-1] + number)
            low = total = 0
            for end in range(len(prefixes)):
                while prefixes[end] - prefixes[low] > k:
                    low += 1
                high = end - ${least}
                if high >= low:
                    total += ${lengths === 'even' ? '(high - low) // 2 + 1' : 'high - low + 1'}
            return total`
          : `
        from collections import Counter

        def solve(numbers, k):
            prefixes = [0]
            for number in numbers:
                prefixes.append(prefixes[-1] ${sum === 'xor' ? '^' : '+'} number)
            seen = Counter()
            total = 0
            for end in range(${least}, len(prefixes)):
                start = end - ${least}
                seen[${sum === 'divisible' ? 'prefixes[start] % k' : 'prefixes[start]'}, ${lengths === 'even' ? 'start % 2' : '0'}] += 1
                total += seen[${
                  { equal: 'prefixes[end] - k', divisible: 'prefixes[end] % k', xor: 'prefixes[end] ^ k', most: '' }[sum]
                }, ${lengths === 'even' ? 'end % 2' : '0'}]
            return total`,
      mistakes:
        sum === 'most'
          ? [
              ['> k', '> k - 1 and low < end'],
              [`end - ${least}`, `end - ${least + 1}`],
            ]
          : [[`range(${least}, `, `range(${least + 1}, `]],
      slow: [
        `
        def solve(numbers, k):
            total = 0
            for start in range(len(numbers)):
                value = 0
                for end in range(start, len(numbers)):
                    value ${sum === 'xor' ? '^' : '+'}= numbers[end]
                    length = end - start + 1
                    if length >= ${least}${lengths === 'even' ? ' and length % 2 == 0' : ''} and ${
                      { equal: 'value == k', divisible: 'value % k == 0', xor: 'value == k', most: 'value <= k' }[sum]
                    }:
                        total += 1
            return total`,
      ],
      inputs: (random) => [
        [[1, 2, 3, 0, 3], 3],
        [[2, 2, 2, 2], 2],
        small(random),
        [[], 1],
        [[5], 5],
        [[0, 0, 0, 0, 0, 0], sum === 'divisible' ? 3 : 0],
        ...times(7, () => small(random)),
        [integers(random, 20_000, ...values), sum === 'most' ? 300_000 : sum === 'divisible' ? 7 : 5],
        [integers(random, 20_000, 0, 1), sum === 'most' ? 9000 : 1 + Number(sum === 'divisible')],
      ],
    };
  },
);

const COMPARED = {
  greater: { says: 'greater than', python: '>', test: (other: number, own: number) => other > own },
  smaller: { says: 'smaller than', python: '<', test: (other: number, own: number) => other < own },
  atLeast: { says: 'at least as large as', python: '>=', test: (other: number, own: number) => other >= own },
} as const;

export const nearest = defineFamily(
  'nearest',
  combine({ side: ['left', 'right'], compared: ['greater', 'smaller', 'atLeast'], result: ['distances', 'values'] } as const),
  ({ side, compared, result }) => {
    const { says, python, test } = COMPARED[compared];
    return {
      level: 3,
      parameters: 'numbers',
      statement: `
        The partner of a number of the list is the nearest number to the ${side} of it that is ${says} it; some numbers have none. Return ${
          result === 'distances'
            ? 'the sum, over all numbers with a partner, of the distance to the partner (1 for the next place)'
            : 'the sum of the partners of all numbers that have one; a number that is the partner of several counts for each'
        }, and the number of those without a partner, as a list of two numbers.

        There are at most 50,000 numbers from -100,000 to 100,000.`,
      reference(numbers: number[]) {
        const list = side === 'left' ? numbers : numbers.toReversed();
        const stack: number[] = [];
        let [sum, alone] = [0, 0];
        for (const [index, number] of list.entries()) {
          while (stack.length > 0 && !test(list[stack.at(-1)!]!, number)) stack.pop();
          const partner = stack.at(-1);
          if (partner === undefined) alone += 1;
          else sum += result === 'distances' ? index - partner : list[partner]!;
          stack.push(index);
        }
        return [sum, alone];
      },
      python: `
        def solve(numbers):
            waiting = []
            total = 0
            order = ${side === 'right' ? 'range(len(numbers))' : 'range(len(numbers) - 1, -1, -1)'}
            for index in order:
                while waiting and numbers[index] ${python} numbers[waiting[-1]]:
                    found = waiting.pop()
                    total += ${result === 'distances' ? 'abs(index - found)' : 'numbers[index]'}
                waiting.append(index)
            return [total, len(waiting)]`,
      mistakes: [[`numbers[index] ${python} numbers`, `numbers[index] ${{ '>': '>=', '<': '<=', '>=': '>' }[python]} numbers`]],
      slow: [
        `
        def solve(numbers):
            total = alone = 0
            for index in range(len(numbers)):
                for other in ${side === 'right' ? 'range(index + 1, len(numbers))' : 'range(index - 1, -1, -1)'}:
                    if numbers[other] ${python} numbers[index]:
                        total += ${result === 'distances' ? 'abs(index - other)' : 'numbers[other]'}
                        break
                else:
                    alone += 1
            return [total, alone]`,
      ],
      inputs: (random) => [
        [[3, 1, 4, 1, 5]],
        [[2, 2, 2]],
        [integers(random, 9, -5, 5)],
        [[]],
        [[7]],
        [[1, 2, 3, 4, 5]],
        [[5, 4, 3, 2, 1]],
        ...times(7, () => [integers(random, random.integer(5, 40), -10, 10)]),
        [integers(random, 50_000, -100_000, 100_000)],
        [times(50_000, (index) => index)],
        [times(50_000, (index) => -index)],
      ],
    };
  },
);
