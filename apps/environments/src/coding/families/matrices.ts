import type { SeededRandom } from '@palestra/environment-kit';
import { combine, defineFamily, integers, type Json, times } from './family.ts';

const READINGS = {
  spiral:
    'in a spiral: along the first row to the right, down the last column, back along the last row, up the first column, and so on inwards',
  snake: 'row by row, the first row from left to right, the second from right to left, and so on in turn',
  diagonals:
    'by the diagonals that go from the upper right to the lower left, beginning with the one of the first element; each from its upper end to its lower end',
  columns: 'by columns, from the last column to the first one, each from top to bottom',
} as const;
const TURNS = {
  none: '',
  right: 'First turn it by 90 degrees clockwise. ',
  mirror: 'First mirror it, so that the last column becomes the first one. ',
} as const;

export const matrixReadings = defineFamily(
  'matrix_readings',
  combine({ reading: ['spiral', 'snake', 'diagonals', 'columns'], turn: ['none', 'right', 'mirror'] } as const),
  ({ reading, turn }) => ({
    level: reading === 'spiral' || reading === 'diagonals' ? 3 : 2,
    parameters: 'matrix',
    statement: `
      \`matrix\` is a list of rows of equal length with at least one element. ${TURNS[turn]}Return its elements as one list, ${READINGS[reading]}.

      There are at most 60 rows and 60 columns.`,
    reference(matrix: number[][]) {
      const turned = {
        none: () => matrix,
        right: () => matrix[0]!.map((_, column) => matrix.map((row) => row[column]!).toReversed()),
        mirror: () => matrix.map((row) => row.toReversed()),
      }[turn]();
      const [height, width] = [turned.length, turned[0]!.length];
      const cells = turned.flatMap((row, r) => row.map((value, c) => ({ value, r, c })));
      if (reading === 'spiral') {
        const result: number[] = [];
        for (let rest = turned; rest.length > 0;) {
          const [first, ...others] = rest;
          result.push(...first!);
          // Turn the rest counter-clockwise.
          rest = others.length === 0 ? [] : others[0]!.map((_, column) => others.map((row) => row.at(-1 - column)!));
        }
        return result;
      }
      const key = ({ r, c }: { r: number; c: number }) =>
        ({ snake: r * width + (r % 2 === 0 ? c : width - 1 - c), diagonals: (r + c) * height + r, columns: (width - 1 - c) * height + r })[
          reading
        ];
      return cells.toSorted((a, b) => key(a) - key(b)).map(({ value }) => value);
    },
    python: `
      def solve(matrix):
          ${{ none: 'pass', right: 'matrix = [list(row) for row in zip(*matrix[::-1])]', mirror: 'matrix = [row[::-1] for row in matrix]' }[turn]}
          result = []
          ${
            {
              spiral: `while matrix and matrix[0]:
              result.extend(matrix[0])
              matrix = [list(row) for row in zip(*matrix[1:])][::-1]`,
              snake: `for number, row in enumerate(matrix):
              result.extend(row if number % 2 == 0 else row[::-1])`,
              diagonals: `height, width = len(matrix), len(matrix[0])
          for total in range(height + width - 1):
              for r in range(height):
                  if 0 <= total - r < width:
                      result.append(matrix[r][total - r])`,
              columns: `for c in range(len(matrix[0]) - 1, -1, -1):
              result.extend(row[c] for row in matrix)`,
            }[reading]
          }
          return result`,
    mistakes: [
      {
        spiral: ['matrix[1:])][::-1]', 'matrix[1:])]'],
        snake: ['== 0', '== 1'],
        diagonals: ['matrix[r][total - r]', 'matrix[min(total, height - 1) - r][r]'],
        columns: ['range(len(matrix[0]) - 1, -1, -1)', 'range(len(matrix[0]))'],
      }[reading] as [string, string],
      ...(turn === 'right' ? [['matrix[::-1]', 'matrix'] as [string, string]] : []),
    ],
    inputs: (random) => [
      [
        [
          [1, 2, 3],
          [4, 5, 6],
        ],
      ],
      [
        [
          [1, 2],
          [3, 4],
          [5, 6],
          [7, 8],
        ],
      ],
      matrix(random, 3, 3),
      [[[9]]],
      [[[1, 2, 3, 4, 5]]],
      [[[1], [2], [3]]],
      ...times(8, () => matrix(random, random.integer(2, 9), random.integer(2, 9))),
      matrix(random, 60, 60),
    ],
  }),
);

const matrix = (random: SeededRandom, rows: number, columns: number): Json[] => [times(rows, () => integers(random, columns, -99, 99))];

const WORD_CHANGES = {
  rotate: {
    says: (w: number) => `rotated to the left by three bits: the three highest of the ${w} bits become the lowest`,
    python: '((n << 3) | (n >> (W - 3))) & MASK',
    wrong: ['(n >> (W - 3))', '(n >> (W - 2))'],
  },
  reverse: {
    says: (w: number) => `with its ${w} bits in reverse order`,
    python: 'int(format(n, "0%db" % W)[::-1], 2)',
    wrong: ['format(n, "0%db" % W)', 'format(n, "b")'],
  },
  toGray: {
    says: () => 'as its Gray code: each bit is the exclusive or of that bit and the next higher bit of the number',
    python: 'n ^ (n >> 1)',
    wrong: ['n ^ (n >> 1)', 'n | (n >> 1)'],
  },
  fromGray: {
    says: () =>
      'as the number whose Gray code it is (the Gray code of a number has, at each place, the exclusive or of that bit and the next higher bit of the number)',
    python: 'ungray(n)',
    wrong: ['shift *= 2', 'shift += 8'],
  },
  next: {
    says: (w: number) => `as the next larger number with the same number of one bits, or 0 if no such number fits in ${w} bits`,
    python: 'following(n)',
    wrong: ['// low', '// (low * 2)'],
  },
  swap: {
    says: () => 'with each bit at an even place swapped with the bit at the next higher place (place 0 is the lowest bit)',
    python: '((n & EVEN) << 1) | ((n >> 1) & EVEN)',
    wrong: ['(n >> 1) & EVEN', '(n >> 1) & MASK'],
  },
} as const;

export const bitWords = defineFamily(
  'bit_words',
  combine({ change: ['rotate', 'reverse', 'toGray', 'fromGray', 'next', 'swap'], width: [8, 16, 32] } as const),
  ({ change, width }) => ({
    level: change === 'next' ? 4 : change === 'fromGray' ? 3 : 2,
    parameters: 'numbers',
    statement: `
      Each of \`numbers\` is an unsigned number of ${width} bits, from 0 to 2^${width} - 1. Return the list of these numbers, each ${WORD_CHANGES[change].says(width)}.

      There are at most 2000 numbers.`,
    reference: (numbers: number[]) =>
      numbers.map((number) => {
        // By bits, lowest first.
        const bits = times(width, (place) => Math.floor(number / 2 ** place) % 2);
        const value = (list: number[]) => list.reduce((sum, bit, place) => sum + bit * 2 ** place, 0);
        switch (change) {
          case 'rotate':
            return value(bits.map((_, place) => bits[(place + width - 3) % width]!));
          case 'reverse':
            return value(bits.toReversed());
          case 'toGray':
            return value(bits.map((bit, place) => bit ^ (bits[place + 1] ?? 0)));
          case 'fromGray':
            return value(bits.map((_, place) => bits.slice(place).reduce((odd, bit) => odd ^ bit, 0)));
          case 'swap':
            return value(bits.map((_, place) => bits[place ^ 1]!));
          case 'next': {
            const at = bits.findIndex((bit, place) => bit === 1 && bits[place + 1] === 0);
            if (at < 0) return 0;
            const low = bits.slice(0, at).toSorted((a, b) => b - a);
            return value([...low, 0, 1, ...bits.slice(at + 2)]);
          }
        }
      }),
    python: `
      W = ${width}
      MASK = (1 << W) - 1
      EVEN = sum(1 << place for place in range(0, W, 2))

      def ungray(n):
          shift = 1
          while shift < W:
              n ^= n >> shift
              shift *= 2
          return n

      def following(n):
          if n == 0:
              return 0
          low = n & -n
          up = n + low
          n = up | (((n ^ up) >> 2) // low)
          return n if n <= MASK else 0

      def solve(numbers):
          return [${WORD_CHANGES[change].python} for n in numbers]`,
    mistakes: [[WORD_CHANGES[change].wrong[0], WORD_CHANGES[change].wrong[1]]],
    inputs: (random) => [
      [[1, 6, 200]],
      [[0, 2 ** width - 1]],
      [integers(random, 3, 0, 2 ** width - 1)],
      [[]],
      [[1]],
      [[2 ** (width - 1), 2 ** (width - 1) + 1, 3]],
      [times(40, (index) => index)],
      [times(width, (place) => 2 ** place)],
      ...times(6, () => [integers(random, 25, 0, 2 ** width - 1)]),
      [integers(random, 2000, 0, 2 ** width - 1)],
    ],
  }),
);
