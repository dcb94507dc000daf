import type { SeededRandom } from '@palestra/environment-kit';
import { combine, defineFamily, type Json, times } from './family.ts';

interface Sale {
  city: string;
  item: string;
  year: number;
  amount: number;
}
const GROUPS = {
  city: { says: 'city', python: 'row["city"]', of: ({ city }: Sale) => city },
  item: { says: 'item', python: 'row["item"]', of: ({ item }: Sale) => item },
  both: {
    says: 'city and item, whose key is "city/item"',
    python: 'row["city"] + "/" + row["item"]',
    of: ({ city, item }: Sale) => `${city}/${item}`,
  },
} as const;
const sum = (numbers: number[]) => numbers.reduce((total, number) => total + number, 0);
const AGGREGATES = {
  total: {
    says: 'the sum of the amounts',
    python: 'sum(row["amount"] for row in rows)',
    of: (rows: Sale[]) => sum(rows.map(({ amount }) => amount)),
  },
  largest: {
    says: 'the largest amount',
    python: 'max(row["amount"] for row in rows)',
    of: (rows: Sale[]) => Math.max(...rows.map(({ amount }) => amount)),
  },
  years: {
    says: 'the number of different years',
    python: 'len({row["year"] for row in rows})',
    of: (rows: Sale[]) => new Set(rows.map(({ year }) => year)).size,
  },
  mean: {
    says: 'the mean amount, rounded down to a whole number',
    python: 'sum(row["amount"] for row in rows) // len(rows)',
    of: (rows: Sale[]) => Math.floor(sum(rows.map(({ amount }) => amount)) / rows.length),
  },
} as const;
const FILTERS = {
  all: { says: '', python: 'True', of: () => true },
  recent: { says: ' Records before the year 2015 do not count.', python: 'row["year"] >= 2015', of: ({ year }: Sale) => year >= 2015 },
} as const;

export const groupedRecords = defineFamily(
  'grouped_records',
  combine({ group: ['city', 'item', 'both'], aggregate: ['total', 'largest', 'years', 'mean'], filter: ['all', 'recent'] } as const).filter(
    ({ group, filter }) => group !== 'item' || filter === 'recent',
  ),
  ({ group, aggregate, filter }) => ({
    level: 2,
    parameters: 'records, least',
    statement: `
      Each of \`records\` is a dictionary with a \`city\`, an \`item\` (texts), a \`year\` and an \`amount\` (numbers).${FILTERS[filter].says} Group them by ${GROUPS[group].says}, and compute for each group ${
        AGGREGATES[aggregate].says
      }. Return the list of the pairs [key, value] of all groups whose value is at least \`least\`, ordered by value, largest first, and for equal values by key in alphabetical order.

      There are at most 800 records; amounts are from -500 to 1000.`,
    reference(records: Sale[], least: number) {
      const groups = new Map<string, Sale[]>();
      for (const row of records.filter(FILTERS[filter].of))
        groups.set(GROUPS[group].of(row), [...(groups.get(GROUPS[group].of(row)) ?? []), row]);
      return [...groups]
        .map(([key, rows]): [string, number] => [key, AGGREGATES[aggregate].of(rows)])
        .filter(([, value]) => value >= least)
        .toSorted(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
    },
    python: `
      def solve(records, least):
          groups = {}
          for row in records:
              if ${FILTERS[filter].python}:
                  groups.setdefault(${GROUPS[group].python}, []).append(row)
          found = []
          for key, rows in groups.items():
              value = ${AGGREGATES[aggregate].python}
              if value >= least:
                  found.append([key, value])
          found.sort(key=lambda pair: (-pair[1], pair[0]))
          return found`,
    mistakes: [
      ['(-pair[1], pair[0])', '-pair[1]'],
      ['value >= least', 'value > least'],
      ...(aggregate === 'mean' ? [['// len(rows)', '/ len(rows)'] as [string, string]] : []),
    ],
    inputs: (random) => [
      sales(random, 5, 10),
      sales(random, 6, 1),
      sales(random, 7, 50),
      [[], 0],
      [[{ city: 'Rome', item: 'pen', year: 2015, amount: -3 }], -3],
      [[...tied('Rome', 'pen'), ...tied('Bern', 'ink'), ...tied('Oslo', 'desk')], aggregate === 'years' ? 2 : -9],
      ...times(8, () => sales(random, random.integer(10, 60), random.pick([1, 2, 3]))),
      sales(random, 800, 1),
    ],
  }),
);

/** Two records of a group with the same values as other such groups. */
const tied = (city: string, item: string) => [
  { city, item, year: 2016, amount: -3 },
  { city, item, year: 2019, amount: 8 },
];

function sales(random: SeededRandom, count: number, least: number): Json[] {
  const row = () => ({
    city: random.pick(['Rome', 'Oslo', 'Lima', 'Bern', 'Cairo']),
    item: random.pick(['pen', 'ink', 'desk', 'lamp']),
    year: random.integer(2008, 2022),
    amount: random.integer(-50, 100),
  });
  return [times(count, row), least];
}

const JOINS = {
  inner: 'one line [name, price, id] for every pair of an order and its product',
  left: 'one line [id, name] for every order: the name of its product, or `None` if there is no such product',
  unsold: 'the names of the products that no order names, in alphabetical order',
  totals: 'the list of pairs [name, sum of price × count over its orders] of all products, also those without orders (0)',
} as const;
const DUPLICATES = {
  first: 'If several products have the same code, the first of them counts and the others are ignored',
  last: 'If several products have the same code, the last of them counts and the others are ignored',
  cheap:
    'If several products have the same code, the cheapest of them counts (the first of several equally cheap ones), and the others are ignored',
} as const;

export const joinedTables = defineFamily(
  'joined_tables',
  combine({ join: ['inner', 'left', 'unsold', 'totals'], duplicate: ['first', 'last', 'cheap'] } as const),
  ({ join, duplicate }) => ({
    level: 3,
    parameters: 'products, orders',
    statement: `
      \`products\` is a list of [code, name, price] with different names, \`orders\` a list of [id, code, count]. An order belongs to the product with its code, if there is one. ${DUPLICATES[duplicate]}. Return ${JOINS[join]}.${
        join === 'inner' || join === 'left'
          ? ' Lines are in the order of the orders.'
          : join === 'totals'
            ? ' The pairs are ordered by sum, largest first, and for equal sums by name in alphabetical order.'
            : ''
      }

      There are at most 2500 products and 2500 orders. Codes are numbers.`,
    reference(products: [number, string, number][], orders: [number, number, number][]) {
      const known = new Map<number, [number, string, number]>();
      for (const product of duplicate === 'last' ? products : products.toReversed()) {
        const before = known.get(product[0]);
        if (duplicate !== 'cheap' || before === undefined || product[2] <= before[2]) known.set(product[0], product);
      }
      const kept = [...known.values()];
      switch (join) {
        case 'inner':
          return orders.flatMap(([id, code]): Json[] => (known.has(code) ? [[known.get(code)![1], known.get(code)![2], id]] : []));
        case 'left':
          return orders.map(([id, code]) => [id, known.get(code)?.[1] ?? null]);
        case 'unsold': {
          const sold = new Set(orders.map(([, code]) => code));
          return kept
            .filter(([code]) => !sold.has(code))
            .map(([, name]) => name)
            .toSorted();
        }
        case 'totals': {
          const counts = new Map<number, number>();
          for (const [, code, count] of orders) counts.set(code, (counts.get(code) ?? 0) + count);
          return kept
            .map(([code, name, price]): [string, number] => [name, price * (counts.get(code) ?? 0)])
            .toSorted(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
        }
      }
    },
    python: `
      def solve(products, orders):
          known = {}
          for code, name, price in products:
              if ${{ first: 'code not in known', last: 'True', cheap: 'code not in known or price < known[code][1]' }[duplicate]}:
                  known[code] = (name, price)
          ${
            {
              inner: 'return [[*known[code], id] for id, code, count in orders if code in known]',
              left: 'return [[id, known[code][0] if code in known else None] for id, code, count in orders]',
              unsold: `sold = {code for id, code, count in orders}
          return sorted(name for code, (name, price) in known.items() if code not in sold)`,
              totals: `totals = {code: 0 for code in known}
          for id, code, count in orders:
              if code in totals:
                  totals[code] += count * known[code][1]
          return sorted(([known[code][0], total] for code, total in totals.items()), key=lambda pair: (-pair[1], pair[0]))`,
            }[join]
          }`,
    mistakes: [
      [
        { first: 'if code not in known:\n', last: 'if True:\n', cheap: 'price < known[code][1]' }[duplicate],
        { first: 'if True:\n', last: 'if code not in known:\n', cheap: 'price <= known[code][1]' }[duplicate],
      ],
    ],
    inputs: (random) => [
      [
        [
          [7, 'pen', 2],
          [9, 'ink', 5],
        ],
        [
          [1, 9, 3],
          [2, 7, 1],
          [3, 4, 1],
        ],
      ],
      [
        [
          [1, 'b', 3],
          [1, 'a', 3],
          [1, 'c', 2],
        ],
        [[5, 1, 2]],
      ],
      joinTables(random, 5, 6),
      [[], []],
      [[], [[1, 2, 3]]],
      [
        [
          [3, 'x', 0],
          [2, 'w', 4],
          [3, 'v', 0],
          [5, 'u', 9],
          [2, 't', 4],
        ],
        [
          [1, 3, 1],
          [2, 2, 1],
        ],
      ],
      ...times(8, () => joinTables(random, random.integer(5, 25), random.integer(5, 25))),
      joinTables(random, 2000, 2000),
    ],
  }),
);

const joinTables = (random: SeededRandom, products: number, orders: number): Json[] => [
  times(products, (index) => [random.integer(1, products), `p${(index * 7919) % 10_007}`, random.integer(1, 9)]),
  times(orders, (id) => [id, random.integer(1, products), random.integer(1, 5)]),
];
