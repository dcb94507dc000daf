import type { SeededRandom } from '@palestra/environment-kit';
import { combine, defineFamily, type Json, times } from './family.ts';

const MODULUS = 9973;
const PRECEDENCES = {
  usual: { says: '`*` binds more tightly than `+` and `-`', of: { '+': 1, '-': 1, '*': 2 } },
  flat: { says: '`+`, `-` and `*` bind equally', of: { '+': 1, '-': 1, '*': 1 } },
  sumsFirst: { says: '`+` and `-` bind more tightly than `*`', of: { '+': 2, '-': 2, '*': 1 } },
} as const;

export const expressions = defineFamily(
  'expressions',
  combine({ precedence: ['usual', 'flat', 'sumsFirst'], negative: [false, true], larger: [false, true] } as const),
  ({ precedence, negative, larger }) => {
    const strength: Record<string, number> = { ...PRECEDENCES[precedence].of, ...(larger ? { '#': 0 } : {}) };
    const inputs = (random: SeededRandom, size: number): Json[] => [expression(random, size, Object.keys(strength), negative)];
    return {
      level: 4,
      parameters: 'text',
      statement: `
        Compute the value of an expression of whole numbers, the operators ${Object.keys(strength)
          .map((sign) => `\`${sign}\``)
          .join(', ')}${
          negative ? ', the sign `-` in front of a number, a parenthesis or another such sign' : ''
        }, and parentheses. Spaces may stand between any two of these. ${PRECEDENCES[precedence].says}; operators that bind equally are applied from left to right.${
          larger ? ' `a # b` is the larger one of a and b; it binds less tightly than all others.' : ''
        }${negative ? ' The sign binds most tightly.' : ''} Every result${
          negative ? ', also that of the sign,' : ''
        } and every number is reduced to its remainder modulo ${MODULUS}, from 0 to ${MODULUS - 1}, before it is used further.

        The expression is valid, has at most 20,000 characters and at most 60 parentheses inside each other.`,
      // Shunting yard; the program descends recursively.
      reference(given: string) {
        const values: number[] = [];
        const operators: string[] = [];
        const reduce = (value: number) => ((value % MODULUS) + MODULUS) % MODULUS;
        const apply = () => {
          const operator = operators.pop()!;
          const b = values.pop()!;
          if (operator === '~') return void values.push(reduce(-b));
          const a = values.pop()!;
          values.push(reduce(operator === '+' ? a + b : operator === '-' ? a - b : operator === '*' ? a * b : Math.max(a, b)));
        };
        let operandNext = true;
        for (const token of given.match(/\d+|[-+*#()]/g)!) {
          if (/\d/.test(token)) {
            values.push(reduce(Number(token)));
            operandNext = false;
          } else if (token === '(') operators.push(token);
          else if (token === ')') {
            while (operators.at(-1) !== '(') apply();
            operators.pop();
            operandNext = false;
          } else if (operandNext) operators.push('~');
          else {
            for (let top = operators.at(-1); top !== undefined && top !== '('; top = operators.at(-1)) {
              if (top !== '~' && strength[top]! < strength[token]!) break;
              apply();
            }
            operators.push(token);
            operandNext = true;
          }
        }
        while (operators.length > 0) apply();
        return values[0]!;
      },
      python: `
        import re

        STRENGTH = {${Object.entries(strength)
          .map(([sign, value]) => `"${sign}": ${value}`)
          .join(', ')}}

        def solve(text):
            tokens = re.findall(r"[0-9]+|[-+*#()]", text)
            position = 0

            def operand():
                nonlocal position
                token = tokens[position]
                position += 1
                if token == "(":
                    value = binary(0)
                    position += 1
                    return value
                if token == "-":
                    return -operand() % ${MODULUS}
                return int(token) % ${MODULUS}

            def binary(least):
                nonlocal position
                left = operand()
                while position < len(tokens) and tokens[position] != ")" and STRENGTH[tokens[position]] >= least:
                    sign = tokens[position]
                    position += 1
                    right = binary(STRENGTH[sign] + 1)
                    if sign == "+":
                        left = left + right
                    elif sign == "-":
                        left = left - right
                    elif sign == "*":
                        left = left * right
                    else:
                        left = max(left, right)
                    left %= ${MODULUS}
                return left

            return binary(0)`,
      mistakes: [
        ['STRENGTH[sign] + 1', 'STRENGTH[sign]'],
        ['[0-9]+|', '[0-9]|'],
        ...(negative ? [['-operand()', '-binary(1)'] as [string, string]] : []),
      ],
      inputs: (random) => [
        ['10 - 4 - 3 * 2'],
        [`2 * (3 + 4)${larger ? ' # 5 + 20' : ''} - 1`],
        [negative ? '-(2 - 7) * --3 - -1' : '7 - 2 * 5 - 1'],
        ['7'],
        ['((12))'],
        ['3-10'],
        ['123456'],
        ['1+2*3-4*5+6'],
        ['2*3-4*5'],
        ...times(8, () => inputs(random, random.integer(3, 25))),
        inputs(random, 3000),
      ],
    };
  },
);

function expression(random: SeededRandom, size: number, operators: string[], negative: boolean, depth = 0): string {
  let result = '';
  for (let left = size; left > 0;) {
    const inner = depth < 25 && left > 3 && random.next() < 0.3 ? random.integer(2, Math.min(left - 1, 40)) : 1;
    if (result !== '') result += random.pick([`${random.pick(operators)}`, ` ${random.pick(operators)} `]);
    if (negative && random.next() < 0.2) result += random.pick(['-', '- ', '--']);
    result += inner > 1 ? `(${expression(random, inner, operators, negative, depth + 1)})` : String(random.integer(0, 120));
    left -= inner;
  }
  return result;
}
