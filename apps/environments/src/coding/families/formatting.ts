import type { SeededRandom } from '@palestra/environment-kit';
import { combine, defineFamily, type Json, text, times, words } from './family.ts';

const ALIGNED = {
  left: 'starts at the left edge and has no spaces at its end',
  right: 'ends at the right edge: spaces in front fill it to the full width',
  centre: 'is centred: the number of spaces in front is half of the missing characters, rounded down, and there are no spaces at the end',
  full: 'is filled to the full width by more spaces between its words: the gaps differ by at most one space, and the wider gaps come first. The last line, and a line of one word, have single spaces and none at the end',
} as const;

export const wrappedText = defineFamily(
  'wrapped_text',
  combine({ align: ['left', 'right', 'centre', 'full'], width: [12, 20, 31] } as const),
  ({ align, width }) => ({
    level: align === 'full' ? 3 : 2,
    parameters: 'text',
    statement: `
      Break \`text\` into lines of at most ${width} characters and return the list of lines. Words are separated by one or more spaces; the text may have spaces at its ends. Each line takes as many words as fit, with one space between them; a word longer than a line gets a line to itself and stays as it is. Each line ${ALIGNED[align]}.

      A text without words gives an empty list. \`text\` has at most 9000 characters.`,
    reference(given: string) {
      const lines: string[][] = [];
      for (const word of given.split(' ').filter(Boolean)) {
        const last = lines.at(-1);
        if (last && last.join(' ').length + 1 + word.length <= width) last.push(word);
        else lines.push([word]);
      }
      return lines.map((line, index) => {
        const plain = line.join(' ');
        const missing = Math.max(0, width - plain.length);
        if (align === 'right') return ' '.repeat(missing) + plain;
        if (align === 'centre') return ' '.repeat(Math.floor(missing / 2)) + plain;
        if (align === 'left' || line.length === 1 || index === lines.length - 1) return plain;
        const gaps = line.length - 1;
        return line
          .map((word, at) => word + ' '.repeat(at === gaps ? 0 : 1 + Math.floor(missing / gaps) + (at < missing % gaps ? 1 : 0)))
          .join('');
      });
    },
    python: `
      def solve(text):
          width = ${width}
          lines = []
          for word in text.split():
              if lines and len(" ".join(lines[-1])) + 1 + len(word) <= width:
                  lines[-1].append(word)
              else:
                  lines.append([word])
          result = []
          for number, line in enumerate(lines):
              plain = " ".join(line)
              missing = max(0, width - len(plain))
              ${
                {
                  left: 'result.append(plain)',
                  right: 'result.append(" " * missing + plain)',
                  centre: 'result.append(" " * (missing // 2) + plain)',
                  full: `if len(line) == 1 or number == len(lines) - 1:
                  result.append(plain)
                  continue
              gaps = len(line) - 1
              wide = missing % gaps
              filled = ""
              for at, word in enumerate(line):
                  filled += word
                  if at < gaps:
                      filled += " " * (1 + missing // gaps + (at < wide))
              result.append(filled)`,
                }[align]
              }
          return result`,
    mistakes: [
      ['+ 1 + len(word) <= width', '+ 1 + len(word) < width'],
      ['text.split()', 'text.split(" ")'],
    ],
    inputs: (random) => [
      ['the quick brown fox jumps over the lazy dog'],
      ['  two   spaces and antidisestablishmentarianism  '],
      [words(random, 14).join(' ')],
      [''],
      ['   '],
      ['word'],
      [`${'x'.repeat(width)} ${'y'.repeat(width - 1)} z ${'w'.repeat(width + 1)} v`],
      ['a '.repeat(40)],
      ...times(6, () => [words(random, random.integer(5, 50)).join(random.pick([' ', '  ']))]),
      [words(random, 1500).join(' ')],
    ],
  }),
);

const DELIMITERS = { braces: ['{', '}'], angles: ['<', '>'], squares: ['[', ']'] } as const;
const MISSING = {
  keep: 'the placeholder stays as it is',
  empty: 'the placeholder becomes the empty text',
  mark: 'the placeholder becomes its name between question marks, for example ?name?',
} as const;

export const templates = defineFamily(
  'templates',
  combine({ delimiters: ['braces', 'angles', 'squares'], missing: ['keep', 'empty', 'mark'], fallback: [false, true] } as const),
  ({ delimiters, missing, fallback }) => {
    const [open, close] = DELIMITERS[delimiters];
    return {
      level: fallback ? 3 : 2,
      parameters: 'template, values',
      statement: `
        A placeholder in \`template\` is a name of one or more letters a to z between ${open} and ${close}${
          fallback
            ? `, or such a name, a | and a default, which is any text without ${open}, ${close} and |, possibly empty: ${open}name|default${close}`
            : ''
        }. Return the template in which each placeholder whose name is a key of the dictionary \`values\` is replaced by its value. If the name is not a key, ${
          fallback ? 'a placeholder with a default becomes the default; otherwise ' : ''
        }${MISSING[missing]}. Whatever is not exactly a placeholder stays as it is, and values are inserted without looking for placeholders in them.

        \`template\` has at most 5000 characters.`,
      reference(template: string, values: Record<string, string>) {
        let result = '';
        for (let at = 0; at < template.length;) {
          const end = template[at] === open ? template.indexOf(close, at) : -1;
          const inside = end < 0 ? '' : template.slice(at + 1, end);
          const [name = '', ...defaults] = inside.split('|');
          const valid = /^[a-z]+$/.test(name) && !inside.includes(open) && defaults.length <= (fallback ? 1 : 0);
          if (!valid) {
            result += template[at]!;
            at += 1;
            continue;
          }
          const otherwise = { keep: template.slice(at, end + 1), empty: '', mark: `?${name}?` }[missing];
          result += Object.hasOwn(values, name) ? values[name]! : (defaults[0] ?? otherwise);
          at = end + 1;
        }
        return result;
      },
      python: `
        import re

        PATTERN = re.compile(r"\\${open}([a-z]+)${fallback ? `(?:\\|([^\\${open}\\${close}|]*))?` : '()'}\\${close}")

        def solve(template, values):
            def replace(match):
                name, default = match.groups()
                if name in values:
                    return values[name]
                ${fallback ? 'if default is not None:\n                    return default\n                ' : ''}return ${
                  { keep: 'match.group(0)', empty: '""', mark: '"?" + name + "?"' }[missing]
                }
            return PATTERN.sub(replace, template)`,
      mistakes: [
        ['[a-z]+', '[a-z]*'],
        ['return values[name]', 'return PATTERN.sub(replace, values[name])'],
      ],
      inputs: (random) => [
        [`Dear ${open}title${close} ${open}name${close}, see ${open}place${close}.`, { name: 'Ada', title: 'Dr' }],
        [`${open}a${close}${open}b${fallback ? '|none' : ''}${close}${open}c d${close}`, { a: '1', c: '3' }],
        [`${open}${open}x${close}${close} ${open}${close} ${open}X${close}`, { x: `${open}y${close}`, y: 'no', '': 'empty' }],
        ['', {}],
        [`${open}x`, { x: '1' }],
        [`${open}empty${close}|`, { empty: '' }],
        [`${open}a${close}${open}${close}${open}b${close}`, { a: `${open}b${close}`, b: 'w', '': 'no' }],
        [`${open}x|${close}${open}y|a|b${close}${open}|d${close}`, { y: 'w' }],
        [`${open}x|default text${close} ${open}y|other${close}`, { y: 'w' }],
        ...times(7, () => template(random, open, close, random.integer(4, 25))),
        template(random, open, close, 500),
      ],
    };
  },
);

function template(random: SeededRandom, open: string, close: string, parts: number): Json[] {
  const names = times(8, () => text(random, random.integer(1, 3), 'abc'));
  const part = () => {
    const name = random.pick(names);
    return random.pick([
      `${open}${name}${close}`,
      `${open}${name}|${text(random, 3, 'xyz ')}${close}`,
      ` ${name} `,
      open,
      `${name}${close}`,
    ]);
  };
  const values = Object.fromEntries(names.slice(0, 5).map((name) => [name, text(random, 4, 'PQRS')]));
  return [times(parts, part).join(''), values];
}

const SEPARATORS = { bar: ' | ', gap: '  ', comma: ', ' } as const;

export const tables = defineFamily(
  'tables',
  combine({ separator: ['bar', 'gap', 'comma'], numbersRight: [true, false], rule: [true, false] } as const),
  ({ separator, numbersRight, rule }) => ({
    level: 2,
    parameters: 'header, rows',
    statement: `
      Print a table. \`header\` is the list of the names of the columns, \`rows\` a list of rows with as many texts each. Return the list of lines: the header, ${
        rule ? 'a line with as many hyphens (-) as the header line has characters, spaces included, ' : ''
      }and one line per row. Every cell is filled with spaces to the width of the longest cell of its column, the header included. ${
        numbersRight
          ? 'A cell of a row whose text is a whole number (digits, perhaps after a minus sign) gets the spaces in front of its text; all other cells, and those of the header, get them after it.'
          : 'The spaces come after the text.'
      } Cells are joined by ${JSON.stringify(SEPARATORS[separator])}. Finally, remove the spaces at the end of each line${
        rule ? ' (count the hyphens of the header before that)' : ''
      }.

      There are at most 8 columns and 400 rows.`,
    reference(header: string[], rows: string[][]) {
      const widths = header.map((name, column) => Math.max(name.length, ...rows.map((row) => row[column]!.length)));
      const isNumber = (cell: string) => numbersRight && /^-?\d+$/.test(cell);
      const line = (cells: string[], isHeader: boolean) =>
        cells
          .map((cell, column) => (!isHeader && isNumber(cell) ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!)))
          .join(SEPARATORS[separator]);
      const first = line(header, true);
      return [first, ...(rule ? ['-'.repeat(first.length)] : []), ...rows.map((row) => line(row, false))].map((made) =>
        made.replace(/ +$/, ''),
      );
    },
    python: `
      def is_number(cell):
          digits = cell[1:] if cell.startswith("-") else cell
          return digits != "" and all(c in "0123456789" for c in digits)

      def solve(header, rows):
          widths = [max(len(row[column]) for row in [header] + rows) for column in range(len(header))]
          def line(cells, right):
              filled = []
              for cell, width in zip(cells, widths):
                  filled.append(cell.rjust(width) if right and is_number(cell) else cell.ljust(width))
              return "${SEPARATORS[separator]}".join(filled)
          head = line(header, False)
          lines = [head.rstrip(" ")]
          ${rule ? 'lines.append("-" * len(head))' : ''}
          for row in rows:
              lines.append(line(row, ${numbersRight ? 'True' : 'False'}).rstrip(" "))
          return lines`,
    mistakes: [
      ['for row in [header] + rows)', 'for row in rows)'],
      ['zip(cells, widths)', 'zip(cells, widths[:1] + widths)'],
      ...(numbersRight ? [['cell[1:] if cell.startswith("-") else cell', 'cell'] as [string, string]] : []),
    ],
    inputs: (random) => [
      [
        ['name', 'n'],
        [
          ['pear', '12'],
          ['fig', '7'],
        ],
      ],
      [
        ['item', 'price', 'note'],
        [
          ['a', '-30', ''],
          ['bcd', '5', 'x y'],
        ],
      ],
      [['one'], []],
      [['', 'b'], [['', '']]],
      [
        ['x', '12'],
        [
          ['1', '3'],
          ['-', '1-2'],
          ['-5', '007'],
        ],
      ],
      ...times(6, () => table(random, random.integer(1, 6), random.integer(1, 9))),
      table(random, 5, 300),
    ],
  }),
);

function table(random: SeededRandom, columns: number, rows: number): Json[] {
  const cell = () => (random.next() < 0.4 ? String(random.integer(-999, 9999)) : text(random, random.integer(0, 6), 'abc d-'));
  return [times(columns, () => text(random, random.integer(1, 6), 'xyz')), times(rows, () => times(columns, cell))];
}
