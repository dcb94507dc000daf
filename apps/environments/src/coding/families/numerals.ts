import { combine, defineFamily, integers, type Json, times } from './family.ts';

const SYSTEMS = {
  seven: { says: 'in base 7 with the digits 0 to 6, a minus sign in front of negative numbers', low: -100_000, high: 100_000 },
  negative: {
    says: 'in base -2 with the digits 0 and 1: from right to left, the places are worth 1, -2, 4, -8 and so on',
    low: -100_000,
    high: 100_000,
  },
  balanced: {
    says: 'in balanced base 3: from right to left, the places are worth 1, 3, 9 and so on, and the digits are + for 1, 0 for 0 and - for -1',
    low: -100_000,
    high: 100_000,
  },
  letters: {
    says: 'with the letters a to z as the digits 1 to 26 of base 26 (there is no digit 0): a is 1, z is 26, aa is 27, ab is 28',
    low: 1,
    high: 10_000_000,
  },
  factorial: {
    says: 'in the factorial system: from right to left, the places are worth 1, 2, 6, 24 and so on (1!, 2!, 3!, ...), and the digit at the place worth k! is from 0 to k',
    low: 0,
    high: 3_628_799,
  },
  roman: { says: 'in Roman numerals (M, CM, D, CD, C, XC, L, XL, X, IX, V, IV, I)', low: 1, high: 3999 },
} as const;
const ROMAN = Object.entries({ M: 1000, CM: 900, D: 500, CD: 400, C: 100, XC: 90, L: 50, XL: 40, X: 10, IX: 9, V: 5, IV: 4, I: 1 });

function write(system: keyof typeof SYSTEMS, value: number): string {
  let [rest, result] = [value, ''];
  switch (system) {
    case 'seven':
      return value.toString(7);
    case 'letters':
      for (; rest > 0; rest = Math.floor((rest - 1) / 26)) result = String.fromCharCode(97 + ((rest - 1) % 26)) + result;
      return result;
    case 'roman':
      for (const [sign, worth] of ROMAN) for (; rest >= worth; rest -= worth) result += sign;
      return result;
    case 'factorial':
      for (let base = 2; rest > 0; base += 1) {
        result = (rest % base) + result;
        rest = Math.floor(rest / base);
      }
      return result || '0';
    case 'negative':
      for (; rest !== 0; rest = (rest - Math.abs(rest % 2)) / -2) result = Math.abs(rest % 2) + result;
      return result || '0';
    case 'balanced':
      while (rest !== 0) {
        const digit = ((((rest + 1) % 3) + 3) % 3) - 1;
        result = '-0+'[digit + 1]! + result;
        rest = (rest - digit) / 3;
      }
      return result || '0';
  }
}

const WRITE: Record<keyof typeof SYSTEMS, string> = {
  seven: `if n < 0:
              return "-" + write(-n)
          return (write(n // 7) if n >= 7 else "") + str(n % 7)`,
  negative: `digits = ""
          while n:
              digit = n % 2
              digits = str(digit) + digits
              n = (n - digit) // -2
          return digits or "0"`,
  balanced: `digits = ""
          while n:
              digit = (n + 1) % 3 - 1
              digits = "-0+"[digit + 1] + digits
              n = (n - digit) // 3
          return digits or "0"`,
  letters: `digits = ""
          while n:
              n, digit = divmod(n - 1, 26)
              digits = chr(97 + digit) + digits
          return digits`,
  factorial: `digits = ""
          base = 2
          while n:
              n, digit = divmod(n, base)
              digits = str(digit) + digits
              base += 1
          return digits or "0"`,
  roman: `digits = ""
          for sign, worth in ROMAN:
              while n >= worth:
                  digits += sign
                  n -= worth
          return digits`,
};
const READ: Record<keyof typeof SYSTEMS, string> = {
  seven: 'return int(text, 7)',
  negative: `value = 0
          for c in text:
              value = value * -2 + int(c)
          return value`,
  balanced: `value = 0
          for c in text:
              value = value * 3 + "-0+".index(c) - 1
          return value`,
  letters: `value = 0
          for c in text:
              value = value * 26 + ord(c) - 96
          return value`,
  factorial: `value = 0
          for place, c in enumerate(text):
              value = (value + int(c)) * (len(text) - place)
          return value`,
  roman: `value = 0
          for sign, worth in ROMAN:
              while text.startswith(sign):
                  value += worth
                  text = text[len(sign):]
          return value`,
};
const WRONG: Record<keyof typeof SYSTEMS, { write: [string, string]; read: [string, string] }> = {
  seven: { write: ['n >= 7', 'n > 7'], read: ['int(text, 7)', 'int(text.strip("-"), 7)'] },
  negative: { write: ['(n - digit) // -2', 'n // -2'], read: ['* -2', '* 2'] },
  balanced: { write: ['(n - digit) // 3', 'n // 3'], read: [' - 1', ''] },
  letters: { write: ['divmod(n - 1, 26)', 'divmod(n, 26)'], read: ['- 96', '- 97'] },
  factorial: { write: ['base = 2', 'base = 3'], read: ['(len(text) - place)', 'max(len(text) - place, 2)'] },
  roman: { write: ['n >= worth', 'n > worth'], read: ['while text', 'if text'] },
};

export const numerals = defineFamily(
  'numerals',
  combine({ system: ['seven', 'negative', 'balanced', 'letters', 'factorial', 'roman'], task: ['write', 'read'] } as const),
  ({ system, task }) => {
    const { says, low, high } = SYSTEMS[system];
    const convert = (values: number[]): Json[] => [task === 'write' ? values : values.map((value) => write(system, value))];
    return {
      level: system === 'seven' || system === 'roman' ? 2 : 3,
      parameters: task === 'write' ? 'numbers' : 'texts',
      statement: `
        ${task === 'write' ? 'Return the list of `numbers`, written' : 'Return the list of the numbers that are written in `texts`'} ${says}. There are no leading zeros${low <= 0 ? ', and zero is "0"' : ''}.

        There are at most 2000 ${task === 'write' ? 'numbers' : 'texts'}, of numbers from ${low} to ${high}.`,
      reference: (given: never[]) =>
        task === 'write' ? given.map((value) => write(system, value)) : given.map((digits) => read(system, digits)),
      python: `
        ROMAN = ${JSON.stringify(ROMAN)}

        def ${task}(${task === 'write' ? 'n' : 'text'}):
          ${task === 'write' ? WRITE[system] : READ[system]}

        def solve(given):
            return [${task}(one) for one in given]`,
      mistakes: [WRONG[system][task]],
      inputs: (random) => [
        convert([Math.max(low, 5), 19]),
        convert([28, 100, 1994]),
        convert(integers(random, 4, low, high)),
        [[]],
        convert([low, high]),
        convert([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
        convert(integers(random, 40, Math.max(low, -60), 60)),
        convert([25, 26, 27, 51, 52, 53, 676, 677, 702, 703]),
        ...times(5, () => convert(integers(random, 20, low, high))),
        convert(integers(random, 2000, low, high)),
      ],
    };
  },
);

function read(system: keyof typeof SYSTEMS, digits: string): number {
  switch (system) {
    case 'seven':
      return Number.parseInt(digits, 7);
    case 'roman':
      return [...digits].reduce((sum, sign, index) => {
        const worth = (letter: string | undefined) => Number(ROMAN.find(([name]) => name === letter)?.[1] ?? 0);
        return sum + worth(sign) * (worth(sign) < worth(digits[index + 1]) ? -1 : 1);
      }, 0);
    default: {
      let [value, place, weight] = [0, 0, 1];
      for (const digit of [...digits].toReversed()) {
        place += 1;
        if (system === 'factorial') weight *= place;
        value +=
          weight * (system === 'balanced' ? '-0+'.indexOf(digit) - 1 : system === 'letters' ? digit.charCodeAt(0) - 96 : Number(digit));
        weight *= { negative: -2, balanced: 3, letters: 26, factorial: 1 }[system];
      }
      return value;
    }
  }
}
