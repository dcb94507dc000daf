import type { SeededRandom } from '@palestra/environment-kit';
import { combine, defineFamily, type Json, times } from './family.ts';

const MOVES = {
  four: {
    says: 'to a cell beside, above or below',
    steps: [
      [0, 1],
      [1, 0],
      [0, -1],
      [-1, 0],
    ],
  },
  eight: {
    says: 'to one of the eight cells around',
    steps: [
      [0, 1],
      [1, 0],
      [0, -1],
      [-1, 0],
      [1, 1],
      [1, -1],
      [-1, 1],
      [-1, -1],
    ],
  },
  knight: {
    says: 'like a knight in chess: two cells in one direction and one at a right angle to it, over any cells between',
    steps: [
      [1, 2],
      [2, 1],
      [-1, 2],
      [-2, 1],
      [1, -2],
      [2, -1],
      [-1, -2],
      [-2, -1],
    ],
  },
} as const;

export const gridWalks = defineFamily(
  'grid_walks',
  combine({ moves: ['four', 'eight', 'knight'], around: [false, true], walls: [0, 2] } as const),
  ({ moves, around, walls }) => ({
    level: walls === 0 && !around ? 3 : 4,
    parameters: 'grid',
    statement: `
      \`grid\` is a list of texts of equal length, one per row; \`.\` is a free cell and \`#\` a wall. A piece starts on the free cell \`S\`. One move takes it ${
        MOVES[moves].says
      }. ${around ? 'Edges are connected: beyond the last row is the first one, beyond the last column the first one, and the other way round.' : 'It never leaves the grid.'} ${
        walls === 0 ? 'It may only enter free cells.' : `It may enter free cells, and wall cells at most ${walls} times in all.`
      } Return the smallest number of moves to the free cell \`T\`, or -1 if it cannot get there. There is one \`S\` and one \`T\`.

      The grid has at most 70 rows and 70 columns.`,
    reference(grid: string[]) {
      const [height, width] = [grid.length, grid[0]!.length];
      // fewest[cell]: walls entered, level by level of a breadth-first search.
      let frontier = new Map([[grid.join('').indexOf('S'), 0]]);
      const goal = grid.join('').indexOf('T');
      const fewest = new Map(frontier);
      for (let distance = 0; frontier.size > 0; distance += 1) {
        if (frontier.has(goal)) return distance;
        const next = new Map<number, number>();
        for (const [cell, used] of frontier) {
          for (const [down, right] of MOVES[moves].steps) {
            let [row, column] = [Math.floor(cell / width) + down, (cell % width) + right];
            if (around) [row, column] = [(row + 2 * height) % height, (column + 2 * width) % width];
            const kind = grid[row]?.[column];
            if (kind === undefined) continue;
            const spent = used + (kind === '#' ? 1 : 0);
            const target = row * width + column;
            if (spent > walls || spent >= (fewest.get(target) ?? Infinity)) continue;
            fewest.set(target, spent);
            next.set(target, spent);
          }
        }
        frontier = next;
      }
      return -1;
    },
    python: `
      from collections import deque

      STEPS = ${JSON.stringify(MOVES[moves].steps)}

      def solve(grid):
          height, width = len(grid), len(grid[0])
          start = [(row, line.index("S")) for row, line in enumerate(grid) if "S" in line][0]
          queue = deque([(*start, 0, 0)])
          seen = {(*start, 0)}
          while queue:
              row, column, used, distance = queue.popleft()
              if grid[row][column] == "T":
                  return distance
              for down, right in STEPS:
                  r, c, u = row + down, column + right, used
                  ${around ? 'r, c = r % height, c % width' : 'if not (0 <= r < height and 0 <= c < width):\n                      continue'}
                  if grid[r][c] == "#":
                      u += 1
                  if u <= ${walls} and (r, c, u) not in seen:
                      seen.add((r, c, u))
                      queue.append((r, c, u, distance + 1))
          return -1`,
    mistakes: [
      [`u <= ${walls}`, `u <= ${walls === 0 ? 1 : 0}`],
      around
        ? ['r % height, c % width', 'min(max(r, 0), height - 1), min(max(c, 0), width - 1)']
        : ['0 <= r < height and 0 <= c < width', 'r < height and c < width'],
    ],
    inputs: (random) => [
      [['S.#', '#..', '..T']],
      [['S#.', '##.', '..T']],
      [maze(random, 6, 7, 0.25)],
      [['ST']],
      [['...#', '####', '#S.T']],
      [['S.......T..']],
      [['#T#', '###', '#S#']],
      [['TS', '##', '..', '#.', '..']],
      ...times(12, () => [maze(random, random.integer(6, 16), random.integer(6, 16), walls === 0 ? 0.3 : 0.5)]),
      [maze(random, 70, 70, walls === 0 ? 0.25 : 0.4)],
      [
        times(69, (row) =>
          row === 0
            ? `S${'.'.repeat(69)}`
            : row === 68
              ? `T${'.'.repeat(69)}`
              : row % 2 === 0
                ? '.'.repeat(70)
                : row % 4 === 1
                  ? `${'#'.repeat(69)}.`
                  : `.${'#'.repeat(69)}`,
        ),
      ],
    ],
  }),
);

/** S in the first row and T in the last third, so that most ways are long. */
function maze(random: SeededRandom, rows: number, columns: number, share: number): Json {
  const start = random.integer(0, columns - 1);
  const goal = random.integer(Math.floor((rows * columns * 2) / 3), rows * columns - 1);
  const cell = (index: number) => (index === start ? 'S' : index === goal ? 'T' : random.next() >= share ? '.' : '#');
  return times(rows, (row) => times(columns, (column) => cell(row * columns + column)).join(''));
}

const LINK_RULES = {
  all: '',
  odd: ' A link between two odd numbers is ignored.',
  limit: ' A link is ignored if the merged group would have more than 40 members.',
} as const;
const LINK_RESULTS = {
  groups: { says: 'the number of groups', python: 'groups' },
  largest: { says: 'the size of the largest group', python: 'largest' },
  pairs: { says: 'the number of pairs of different members of the same group', python: 'pairs' },
  joined: {
    says: 'the size of the group that both ends now belong to, or 0 for a link that is ignored or whose ends were in the same group before',
    python: 'joined',
  },
} as const;

export const linkedGroups = defineFamily(
  'linked_groups',
  combine({ result: ['groups', 'largest', 'pairs', 'joined'], rule: ['all', 'odd', 'limit'] } as const),
  ({ result, rule }) => ({
    level: rule === 'all' ? 3 : 4,
    parameters: 'n, links',
    statement: `
      There are \`n\` members, 0 to n - 1, and at first each is a group of its own. Go through \`links\` in order: each link [a, b] merges the groups of a and b.${LINK_RULES[rule]} Return a list with one number per link: after the link, ${LINK_RESULTS[result].says}.

      \`n\` is at most 5000, and there are at most 5000 links.`,
    reference(n: number, links: [number, number][]) {
      const group = times(n, (member) => member);
      const members = times(n, (member) => [member]);
      let [groups, largest, pairs] = [n, n > 0 ? 1 : 0, 0];
      return links.map(([a, b]) => {
        let [big, small] = [group[a]!, group[b]!];
        const ignored =
          (rule === 'odd' && a % 2 === 1 && b % 2 === 1) || (rule === 'limit' && members[big]!.length + members[small]!.length > 40);
        let joined = 0;
        if (big !== small && !ignored) {
          if (members[big]!.length < members[small]!.length) [big, small] = [small, big];
          pairs += members[big]!.length * members[small]!.length;
          for (const member of members[small]!) group[member] = big;
          members[big]!.push(...members[small]!);
          groups -= 1;
          joined = members[big]!.length;
          largest = Math.max(largest, joined);
        }
        return { groups, largest, pairs, joined }[result];
      });
    },
    python: `
      def solve(n, links):
          parent = list(range(n))
          size = [1] * n
          groups, largest, pairs = n, min(n, 1), 0

          def find(member):
              while parent[member] != member:
                  parent[member] = parent[parent[member]]
                  member = parent[member]
              return member

          result = []
          for a, b in links:
              joined = 0
              x, y = find(a), find(b)
              if x != y${{ all: '', odd: ' and not (a % 2 and b % 2)', limit: ' and size[x] + size[y] <= 40' }[rule]}:
                  if size[x] < size[y]:
                      x, y = y, x
                  pairs += size[x] * size[y]
                  parent[y] = x
                  size[x] += size[y]
                  groups -= 1
                  joined = size[x]
                  largest = max(largest, joined)
              result.append(${LINK_RESULTS[result].python})
          return result`,
    mistakes: [
      [
        { groups: 'groups -= 1', largest: 'max(largest, joined)', pairs: 'size[x] * size[y]', joined: 'joined = 0' }[result],
        { groups: 'groups -= 1 + (x == 0)', largest: 'joined', pairs: 'size[x]', joined: 'joined = 1' }[result],
      ],
      ['x != y', 'True'],
      ...(rule === 'all'
        ? []
        : [
            [{ odd: ' and not (a % 2 and b % 2)', limit: '<= 40' }[rule], { odd: ' and not (a % 2 or b % 2)', limit: '< 40' }[rule]] as [
              string,
              string,
            ],
          ]),
    ],
    slow: [
      `
      def solve(n, links):
          group = list(range(n))
          result = []
          for a, b in links:
              joined = 0
              x, y = group[a], group[b]
              if x != y${{ all: '', odd: ' and not (a % 2 and b % 2)', limit: ' and group.count(x) + group.count(y) <= 40' }[rule]}:
                  group = [x if other == y else other for other in group]
                  joined = group.count(x)
              sizes = {}
              for other in group:
                  sizes[other] = sizes.get(other, 0) + 1
              groups = len(sizes)
              largest = max(sizes.values())
              pairs = sum(k * (k - 1) // 2 for k in sizes.values())
              result.append(${LINK_RESULTS[result].python})
          return result`,
    ],
    inputs: (random) => [
      [
        5,
        [
          [0, 1],
          [2, 3],
          [1, 0],
          [1, 2],
        ],
      ],
      [
        4,
        [
          [1, 3],
          [3, 3],
          [0, 3],
        ],
      ],
      someLinks(random, 8, 8),
      [0, []],
      [
        1,
        [
          [0, 0],
          [0, 0],
        ],
      ],
      [60, times(59, (index) => [index, index + 1])],
      ...times(7, () => someLinks(random, random.integer(8, 90), random.integer(8, 90))),
      someLinks(random, 5000, 5000),
    ],
  }),
);

const someLinks = (random: SeededRandom, n: number, count: number): Json[] => [
  n,
  times(count, () => [random.integer(0, n - 1), random.integer(0, n - 1)]),
];
