import { combine, defineFamily, integers, text, times } from './family.ts';

const PRIME = 1_000_007;
const COIN_RESULTS = {
  ways: `in how many ways coins add up to exactly \`target\`, as the remainder modulo ${PRIME}. Two ways are the same if they use each coin of the list equally often`,
  fewest: 'the smallest number of coins that add up to exactly `target`, or -1 if that is impossible',
  most: 'the largest number of coins that add up to exactly `target`, or -1 if that is impossible',
  amounts: 'how many of the amounts 1 to `target` coins can add up to',
} as const;
const COIN_USES = {
  any: 'Each coin of the list may be used any number of times.',
  once: 'Each coin of the list may be used at most once.',
  twice: 'Each coin of the list may be used at most twice.',
} as const;

export const coins = defineFamily(
  'coins',
  combine({ result: ['ways', 'fewest', 'most', 'amounts'], use: ['any', 'once', 'twice'] } as const),
  ({ result, use }) => {
    const most = { any: null, once: 1, twice: 2 }[use];
    return {
      level: use === 'twice' ? 4 : 3,
      parameters: 'coins, target',
      statement: `
        \`coins\` is a list of positive values; equal values at different places are different coins. ${COIN_USES[use]} Return ${COIN_RESULTS[result]}.

        There are at most 25 coins with values from 1 to 500, and \`target\` is from 0 to 3000. No coins at all add up to 0.`,
      // A table per coin and number of uses.
      reference(coins: number[], target: number) {
        type Cell = number | null;
        const join = (a: Cell, b: Cell): Cell => {
          if (a === null || b === null) return a ?? b;
          return result === 'ways' ? (a + b) % PRIME : result === 'fewest' ? Math.min(a, b) : Math.max(a, b);
        };
        let table: Cell[] = times(target + 1, (amount) => (amount === 0 ? (result === 'ways' ? 1 : 0) : null));
        for (const coin of coins) {
          const next = [...table];
          for (let amount = 0; amount <= target; amount += 1) {
            const uses = most === null ? 1 : most;
            for (let used = 1; used <= uses && used * coin <= amount; used += 1) {
              const rest: Cell = (most === null ? next : table)[amount - used * coin]!;
              if (rest !== null) next[amount] = join(next[amount]!, result === 'ways' ? rest : rest + used);
            }
          }
          table = next;
        }
        if (result === 'amounts') return table.slice(1).filter((cell) => cell !== null).length;
        return table[target] ?? (result === 'ways' ? 0 : -1);
      },
      python: `
        def solve(coins, target):
            NONE = None
            table = [NONE] * (target + 1)
            table[0] = ${result === 'ways' ? '1' : '0'}
            for coin in ${use === 'twice' && result !== 'ways' ? '[coin for coin in coins for _ in range(2)]' : 'coins'}:
                ${
                  use === 'twice' && result === 'ways'
                    ? `old = table[:]
                for amount in range(coin, target + 1):
                    for used in (1, 2):
                        if used * coin <= amount and old[amount - used * coin] is not NONE:
                            table[amount] = ((table[amount] or 0) + old[amount - used * coin]) % ${PRIME}`
                    : `for amount in ${use === 'any' ? 'range(coin, target + 1)' : 'range(target, coin - 1, -1)'}:
                    rest = table[amount - coin]
                    if rest is NONE:
                        continue
                    ${
                      result === 'ways'
                        ? `table[amount] = ((table[amount] or 0) + rest) % ${PRIME}`
                        : `if table[amount] is NONE or rest + 1 ${result === 'most' ? '>' : '<'} table[amount]:
                        table[amount] = rest + 1`
                    }`
                }
            ${
              result === 'amounts'
                ? 'return sum(cell is not NONE for cell in table[1:])'
                : `return ${result === 'ways' ? '0' : '-1'} if table[target] is NONE else table[target]`
            }`,
      mistakes: [
        use === 'any'
          ? ['range(coin, target + 1)', 'range(target, coin - 1, -1)']
          : use === 'twice' && result === 'ways'
            ? ['(1, 2)', '(1,)']
            : ['range(target, coin - 1, -1)', 'range(coin, target + 1)'],
        ...(result === 'ways'
          ? []
          : result === 'amounts'
            ? [['table[1:]', 'table'] as [string, string]]
            : [[result === 'most' ? 'rest + 1 >' : 'rest + 1 <', result === 'most' ? 'rest + 1 <' : 'rest + 1 >'] as [string, string]]),
      ],
      slow: [
        `
        def solve(coins, target):
            found = []
            def search(index, left, used):
                if index == len(coins):
                    if left == 0:
                        found.append(used)
                    return
                count = 0
                while count * coins[index] <= left and count <= ${most ?? 10 ** 9}:
                    search(index + 1, left - count * coins[index], used + count)
                    count += 1
            if ${result === 'amounts' ? 'True' : 'False'}:
                total = 0
                for amount in range(1, target + 1):
                    found.clear()
                    search(0, amount, 0)
                    total += bool(found)
                return total
            search(0, target, 0)
            return ${{ ways: `len(found) % ${PRIME}`, fewest: 'min(found, default=-1)', most: 'max(found, default=-1)', amounts: '0' }[result]}`,
      ],
      inputs: (random) => [
        [[1, 2, 5], 8],
        [[3, 3, 6, 9], 12],
        [integers(random, 5, 1, 9), 15],
        [[], 0],
        [[], 4],
        [[7], 14],
        [[2, 4, 6], 9],
        [[2, 2, 3], 4],
        ...times(9, () => [integers(random, random.integer(5, 9), 2, 16), random.integer(12, 40)]),
        [integers(random, 25, 20, 120), 1400],
        [integers(random, 25, 30, 500), 3000],
      ],
    };
  },
);

export const textDistances = defineFamily(
  'text_distances',
  combine({
    costs: [
      [1, 1, 1],
      [2, 2, 3],
      [1, 2, 2],
    ],
    swap: [false, true],
    letters: ['exact', 'vowels'],
  } as const).filter(({ costs, letters }) => letters === 'exact' || costs[2] > 1),
  ({ costs: [insert, remove, replace], swap, letters }) => ({
    level: swap || letters === 'vowels' ? 5 : 4,
    parameters: 'a, b',
    statement: `
      Turn the text \`a\` into the text \`b\` with these steps: insert a letter anywhere (cost ${insert}), delete a letter (cost ${remove}) or replace a letter with another one (cost ${replace}${
        letters === 'vowels' ? ', but 1 if both are vowels: a, e, i, o, u' : ''
      }).${swap ? ' Two neighbouring letters may also be swapped (cost 1); no other step, before or after, changes, moves or separates swapped letters.' : ''} Return the smallest total cost.

      Both texts have at most 350 lower-case letters.`,
    reference(a: string, b: string) {
      const vowel = (letter: string) => 'aeiou'.includes(letter);
      // Row by row: cost to change the first `row` letters of a into the first `column` of b.
      const rows: number[][] = [times(b.length + 1, (column) => column * insert)];
      for (let row = 1; row <= a.length; row += 1) {
        const line = [row * remove];
        for (let column = 1; column <= b.length; column += 1) {
          const [x, y] = [a[row - 1]!, b[column - 1]!];
          const change = x === y ? 0 : letters === 'vowels' && vowel(x) && vowel(y) ? 1 : replace;
          const options = [rows[row - 1]![column]! + remove, line[column - 1]! + insert, rows[row - 1]![column - 1]! + change];
          if (swap && row > 1 && column > 1 && x === b[column - 2] && a[row - 2] === y) options.push(rows[row - 2]![column - 2]! + 1);
          line.push(Math.min(...options));
        }
        rows.push(line);
      }
      return rows[a.length]![b.length]!;
    },
    python: `
      def solve(a, b):
          older = []
          previous = [column * ${insert} for column in range(len(b) + 1)]
          for i, x in enumerate(a):
              current = [(i + 1) * ${remove}]
              for j, y in enumerate(b):
                  change = 0 if x == y else ${letters === 'vowels' ? '1 if x in "aeiou" and y in "aeiou" else ' : ''}${replace}
                  best = min(previous[j + 1] + ${remove}, current[j] + ${insert}, previous[j] + change)
                  ${swap ? 'if i > 0 and j > 0 and x == b[j - 1] and a[i - 1] == y:\n                      best = min(best, older[j - 1] + 1)' : 'pass'}
                  current.append(best)
              older, previous = previous, current
          return previous[-1]`,
    mistakes: [
      [`[(i + 1) * ${remove}]`, '[0]'],
      ['previous[j] + change', 'previous[j] + 1'],
      ...(swap ? [['older[j - 1] + 1', 'older[j - 1] + 2'] as [string, string]] : []),
      ...(letters === 'vowels' ? [['1 if x in "aeiou" and y in "aeiou" else ', ''] as [string, string]] : []),
    ],
    slow: [
      `
      def solve(a, b):
          def cost(i, j):
              if i == 0:
                  return j * ${insert}
              if j == 0:
                  return i * ${remove}
              x, y = a[i - 1], b[j - 1]
              change = 0 if x == y else ${letters === 'vowels' ? '1 if x in "aeiou" and y in "aeiou" else ' : ''}${replace}
              best = min(cost(i - 1, j) + ${remove}, cost(i, j - 1) + ${insert}, cost(i - 1, j - 1) + change)
              if ${swap ? 'i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y' : 'False'}:
                  best = min(best, cost(i - 2, j - 2) + 1)
              return best
          return cost(len(a), len(b))`,
    ],
    inputs: (random) => [
      ['kitten', 'sitting'],
      ['paul', 'pual'],
      [text(random, 6, 'abei'), text(random, 7, 'abei')],
      ['', ''],
      ['', 'xyz'],
      ['xyz', ''],
      ['same', 'same'],
      ['aeiou', 'uoiea'],
      ['abcdefgh', 'badcfehg'],
      ...times(10, () => [text(random, random.integer(5, 30), 'abeix'), text(random, random.integer(5, 30), 'abeix')]),
      [text(random, 350, 'abcdeiou'), text(random, 340, 'abcdeiou')],
    ],
  }),
);
