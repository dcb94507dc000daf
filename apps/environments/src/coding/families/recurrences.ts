import type { SeededRandom } from '@palestra/environment-kit';
import { combine, defineFamily, integers, type Json, times } from './family.ts';

const RULES = {
  two: { says: 'x(n) = a·x(n-1) + b·x(n-2)', size: 2, constant: false },
  constant: { says: 'x(n) = a·x(n-1) + b·x(n-2) + c', size: 2, constant: true },
  three: { says: 'x(n) = a·x(n-1) + b·x(n-2) + c·x(n-3)', size: 3, constant: false },
} as const;
const TERMS = {
  term: { says: 'x(n)', python: 'current[0]' },
  sum: { says: 'the sum x(0) + x(1) + ... + x(n)', python: 'current[-1]' },
  squares: { says: 'x(n)² + x(n+1)²', python: '' },
  skip: { says: 'x(2n+1)', python: '' },
} as const;

export const recurrences = defineFamily(
  'recurrences',
  combine({ rule: ['two', 'constant', 'three'], term: ['term', 'sum', 'squares', 'skip'] } as const),
  ({ rule, term }) => {
    const { says, size, constant } = RULES[rule];
    const firsts = times(size, (index) => `x(${index})`).join(', ');
    const sequence = (random: SeededRandom, n: number): Json[] => [
      integers(random, size, 0, 9),
      integers(random, size + (constant ? 1 : 0), 0, 9),
      n,
      random.integer(1000, 1_000_000),
    ];
    return {
      level: 5,
      parameters: 'first, factors, n, m',
      statement: `
        A sequence begins with the numbers ${firsts} in the list \`first\` and continues by the rule ${says}, where \`factors\` is the list [${constant || size === 3 ? 'a, b, c' : 'a, b'}]. Return ${TERMS[term].says}, as the remainder modulo \`m\`.

        \`n\` is from 0 to 10^15, \`m\` from 1 to 1,000,000; the other numbers are from 0 to 9.`,
      // Companion matrix with exact integers; the state is x(k), x(k+1), ..., 1, sum to k.
      reference(first: number[], factors: number[], n: number, m: number) {
        const width = size + 2;
        const last = times(width, (column) =>
          column < size ? BigInt(factors[size - 1 - column]!) : column === size && constant ? BigInt(factors[2]!) : 0n,
        );
        const unit = (at: number) => times(width, (column) => (column === at ? 1n : 0n));
        // The new sum adds x(k+1), the second entry of the old state.
        const matrix = [
          ...times(size - 1, (row) => unit(row + 1)),
          last,
          unit(size),
          times(width, (column) => (column === size + 1 || column === 1 ? 1n : 0n)),
        ];
        const modulus = BigInt(m);
        const multiply = (a: bigint[][], b: bigint[][]) =>
          a.map((row) => b[0]!.map((_, column) => row.reduce((sum, value, at) => sum + value * b[at]![column]!, 0n) % modulus));
        let state = [...first.map(BigInt), 1n, BigInt(first[0]!)].map((value) => [value % modulus]);
        let power = matrix;
        for (let rest = BigInt(n) * (term === 'skip' ? 2n : 1n) + (term === 'skip' ? 1n : 0n); rest > 0n; rest /= 2n) {
          if (rest % 2n === 1n) state = multiply(power, state);
          power = multiply(power, power);
        }
        const x = (index: number) => state[index]![0]!;
        return Number({ term: x(0), skip: x(0), sum: x(size + 1), squares: x(0) * x(0) + x(1) * x(1) }[term] % modulus);
      },
      python: `
        def multiply(a, b, m):
            return [[sum(x * y for x, y in zip(row, column)) % m for column in zip(*b)] for row in a]

        def solve(first, factors, n, m):
            size = ${size}
            width = size + 2
            matrix = [[0] * width for _ in range(width)]
            for row in range(size - 1):
                matrix[row][row + 1] = 1
            for column in range(size):
                matrix[size - 1][column] = factors[size - 1 - column]
            ${constant ? 'matrix[size - 1][size] = factors[2]' : 'pass'}
            matrix[size][size] = 1
            matrix[size + 1][size + 1] = matrix[size + 1][1] = 1
            current = [[value % m] for value in first + [1, first[0]]]
            k = ${term === 'skip' ? '2 * n + 1' : 'n'}
            while k:
                if k % 2:
                    current = multiply(matrix, current, m)
                matrix = multiply(matrix, matrix, m)
                k //= 2
            return ${{ term: 'current[0][0]', skip: 'current[0][0]', sum: 'current[size + 1][0]', squares: '(current[0][0] ** 2 + current[1][0] ** 2)' }[term]} % m`,
      mistakes: [
        ['factors[size - 1 - column]', 'factors[column]'],
        [term === 'skip' ? '2 * n + 1' : 'k = n\n', term === 'skip' ? '2 * n' : 'k = n + 1\n'],
      ],
      slow: [
        `
        def solve(first, factors, n, m):
            x = list(first)
            total = 0
            target = ${term === 'skip' ? '2 * n + 1' : 'n'}
            for _ in range(target):
                total += x[0]
                x.append((sum(f * v for f, v in zip(factors, reversed(x)))${constant ? ' + factors[2]' : ''}) % m)
                x.pop(0)
            return ${{ term: 'x[0]', skip: 'x[0]', sum: '(total + x[0])', squares: '(x[0] ** 2 + x[1] ** 2)' }[term]} % m`,
      ],
      inputs: (random) => [
        [[0, 1, 1].slice(0, size), [1, 1, 1].slice(0, size + (constant ? 1 : 0)), 10, 1000],
        [[2, 5, 1].slice(0, size), [3, 2, 4].slice(0, size + (constant ? 1 : 0)), 4, 10_000],
        sequence(random, 6),
        sequence(random, 0),
        sequence(random, 1),
        sequence(random, 2),
        [times(size, () => 0), times(size + (constant ? 1 : 0), () => 1), 50, 1],
        ...times(5, () => sequence(random, random.integer(3, 60))),
        sequence(random, 1_000_000_000),
        sequence(random, 10 ** 15),
        sequence(random, 123_456_789_012_345),
      ],
    };
  },
);
