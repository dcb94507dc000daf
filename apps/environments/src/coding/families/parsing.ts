import type { SeededRandom } from '@palestra/environment-kit';
import { combine, defineFamily, type Json, text, times } from './family.ts';

export const separatedValues = defineFamily(
  'separated_values',
  combine({ delimiter: [',', ';', '|'], quote: ['"', "'"], trim: [false, true] } as const),
  ({ delimiter, quote, trim }) => {
    const q = quote === '"' ? '\\"' : quote;
    return {
      level: 3,
      parameters: 'text',
      statement: `
        Parse a table of fields. Rows end with a line feed ("\\n"), fields of a row are separated by \`${delimiter}\`. A field that begins with \`${quote}\`${
          trim ? ' (after any spaces)' : ''
        } is quoted: it reaches to the next single \`${quote}\` and may contain separators and line feeds; a doubled \`${quote}${quote}\` in it stands for one. Behind the closing quote only ${
          trim ? 'spaces, ' : ''
        }a separator, a line feed or the end of the text follows. ${
          trim
            ? 'Spaces at both ends of an unquoted field, and around the quotes of a quoted one, do not belong to it.'
            : 'Spaces belong to a field.'
        } In other fields a quote has no special meaning. A line feed at the very end of the text ends the last row and does not begin another one. Return the list of rows, each a list of its fields as texts. An empty text has no rows; an empty line is a row with one empty field.

        \`text\` is valid and has at most 20,000 characters.`,
      reference(given: string) {
        const rows: string[][] = [];
        let row: string[] = [];
        const field = trim
          ? new RegExp(` *${quote}((?:[^${quote}]|${quote}${quote})*)${quote} *|([^\\n${delimiter === '|' ? '\\|' : delimiter}]*)`, 'y')
          : new RegExp(`${quote}((?:[^${quote}]|${quote}${quote})*)${quote}|([^\\n${delimiter === '|' ? '\\|' : delimiter}]*)`, 'y');
        for (let at = 0; at < given.length || row.length > 0;) {
          field.lastIndex = at;
          const [whole, quoted, plain] = field.exec(given)!;
          at += whole.length;
          row.push(quoted === undefined ? (trim ? plain!.replaceAll(/^ +| +$/g, '') : plain!) : quoted.replaceAll(quote + quote, quote));
          if (given[at] !== delimiter) {
            rows.push(row);
            row = [];
          }
          at += 1;
        }
        return rows;
      },
      python: `
        def solve(text):
            rows = []
            row = []
            at = 0
            size = len(text)
            while at < size:
                ${trim ? 'start = at\n                while start < size and text[start] == " ":\n                    start += 1' : 'start = at'}
                if start < size and text[start] == "${q}":
                    at = start + 1
                    field = ""
                    while True:
                        if text[at] == "${q}":
                            if text[at + 1:at + 2] != "${q}":
                                break
                            at += 1
                        field += text[at]
                        at += 1
                    at += 1
                    ${trim ? 'while at < size and text[at] == " ":\n                        at += 1' : 'pass'}
                else:
                    start = at
                    while at < size and text[at] not in "${delimiter}\\n":
                        at += 1
                    field = text[start:at]${trim ? '.strip(" ")' : ''}
                row.append(field)
                if at < size and text[at] == "${delimiter}":
                    at += 1
                    if at == size:
                        row.append("")
                        rows.append(row)
                        row = []
                else:
                    rows.append(row)
                    row = []
                    at += 1
            return rows`,
      mistakes: [
        [`if text[at + 1:at + 2] != "${q}"`, 'if True'],
        ['if at == size:', 'if False:'],
      ],
      inputs: (random) => [
        [`name${delimiter}age\nAda${delimiter}36\n`],
        [`${quote}a${delimiter}b${quote}${delimiter}c\n${quote}say ${quote}${quote}hi${quote}${quote}${quote}`],
        [` x ${delimiter}${delimiter} y z\n\nend`],
        [''],
        ['\n'],
        [delimiter],
        [`a${delimiter}\n${delimiter}b`],
        [`it${quote}s${delimiter}${quote}${quote}`],
        [`${quote}two\nlines${quote}\n${quote}${quote}${quote}${quote}`],
        ...times(7, () => [separated(random, random.integer(1, 8), delimiter, quote, trim)]),
        [separated(random, 700, delimiter, quote, trim)],
      ],
    };
  },
);

function separated(random: SeededRandom, rows: number, delimiter: string, quote: string, trim: boolean): string {
  const field = () => {
    const content = text(random, random.integer(0, 6), random.pick(['abc', `a ${delimiter}\n${quote}`, ' xy']));
    const needsQuotes = content.includes(delimiter) || content.includes('\n') || content.includes(quote);
    if (!needsQuotes && random.next() < 0.7) return content;
    const quoted = quote + content.replaceAll(quote, quote + quote) + quote;
    return trim && random.next() < 0.5 ? ` ${quoted}  ` : quoted;
  };
  return times(rows, () => times(random.integer(1, 4), field).join(delimiter)).join('\n') + random.pick(['', '\n']);
}

const REPEATED = {
  last: 'the last one counts',
  first: 'the first one counts',
  all: 'its value is all of them in order, joined by a comma',
} as const;

export const settings = defineFamily(
  'settings',
  combine({ comment: ['#', ';'], repeated: ['last', 'first', 'all'], fold: [false, true] } as const),
  ({ comment, repeated, fold }) => ({
    level: 2,
    parameters: 'text, names',
    statement: `
      \`text\` has settings, one per line (lines are separated by "\\n"). Spaces at both ends of a line do not matter. Empty lines and lines that begin with \`${comment}\` are ignored. A line \`[section]\` begins a section; before the first one there is no section. Every other line has the form \`key = value\`: the key ends at the first \`=\`, and spaces at both ends of the key and of the value do not belong to them; a line without \`=\` is ignored. The full name of a setting is \`section.key\`, or only \`key\` where there is no section.${
        fold ? ' Upper and lower case are the same in sections and keys, but not in values.' : ''
      } If a setting occurs several times, ${REPEATED[repeated]}.

      Return the list of the values of the settings whose full names are in the list \`names\`, \`None\` for those that do not occur. \`text\` has at most 20,000 characters; the name of a section never has spaces at its ends.`,
    reference(given: string, names: string[]) {
      const name = (raw: string) => (fold ? raw.toLowerCase() : raw);
      const values = new Map<string, string[]>();
      let section = '';
      for (const raw of given.split('\n')) {
        const line = raw.trim();
        const found = /^\[(.*)\]$/.exec(line);
        if (line === '' || line.startsWith(comment)) continue;
        if (found) section = `${found[1]}.`;
        else if (line.includes('=')) {
          const key = name(section + line.slice(0, line.indexOf('=')).trim());
          values.set(key, [...(values.get(key) ?? []), line.slice(line.indexOf('=') + 1).trim()]);
        }
      }
      return names.map((wanted) => {
        const all = values.get(name(wanted));
        if (!all) return null;
        return repeated === 'all' ? all.join(',') : all.at(repeated === 'first' ? 0 : -1)!;
      });
    },
    python: `
      def solve(text, names):
          values = {}
          section = ""
          for line in text.split("\\n"):
              line = line.strip(" ")
              if not line or line.startswith("${comment}"):
                  continue
              if line.startswith("[") and line.endswith("]"):
                  section = line[1:-1] + "."
                  continue
              key, equals, value = line.partition("=")
              if not equals:
                  continue
              name = (section + key.strip(" "))${fold ? '.lower()' : ''}
              value = value.strip(" ")
              ${
                {
                  last: 'values[name] = value',
                  first: 'values.setdefault(name, value)',
                  all: 'values[name] = values[name] + "," + value if name in values else value',
                }[repeated]
              }
          return [values.get(name${fold ? '.lower()' : ''}) for name in names]`,
    mistakes: [
      ['line.partition("=")', 'line.rpartition("=")'],
      ['section + key.strip(" ")', 'section + key'],
      ['line.startswith("[") and', 'line.startswith("[") and not section and'],
    ],
    inputs: (random) => [
      ['port = 80\n[db]\nhost = here\n', ['port', 'db.host', 'host']],
      [`${comment} note\n[a]\nx=1\nx = 2\nX = 3`, ['a.x', 'a.X', 'x']],
      ['  [s]  \n  key  =  a = b  \nempty =\nnothing', ['s.key', 's.empty', 's.nothing']],
      ['', ['a']],
      ['=5\n[]\n=6', ['', '.', 'a']],
      [`a = 1 ${comment} 2\n${comment}a = 3\n[a]\n = 7`, ['a', 'a.', 'a.a']],
      ['[A]\n[b]\nx = 1\n[A]\nx = Two', ['A.x', 'a.x', 'b.x', 'B.X']],
      ...times(7, () => settingsText(random, random.integer(4, 30), comment)),
      settingsText(random, 1200, comment),
    ],
  }),
);

function settingsText(random: SeededRandom, lines: number, comment: string): Json[] {
  const key = () => text(random, random.integer(1, 2), 'abA');
  const line = () =>
    random.pick([
      `[${key()}]`,
      `${key()} = ${text(random, 3, 'xyZ=')}`,
      ` ${key()}=${text(random, 2, '01')} `,
      '',
      `${comment} ${key()} = 1`,
      key(),
    ]);
  const names = times(30, () => random.pick([key(), `${key()}.${key()}`]));
  return [times(lines, line).join('\n'), names];
}

const EXTRA_PARTS = {
  plain: '',
  dots: 'The part `...` leads two folders up, like `../..`.',
  again:
    'The part `=` repeats the effect of the part before it in the same path: a name enters a folder of that name again, `.` and `..` are repeated, too. At the beginning of a path `=` has no effect, and a further `=` repeats the same part once more.',
} as const;

export const folders = defineFamily(
  'folders',
  combine({ separator: ['/', ':'], aboveRoot: ['stays', 'refused'], extra: ['plain', 'dots', 'again'] } as const),
  ({ separator: s, aboveRoot, extra }) => ({
    level: extra === 'plain' ? 2 : 3,
    parameters: 'start, paths',
    statement: `
      Follow changes of the current folder. Folders are written with \`${s}\` in front of each part: \`${s}\` is the root, \`${s}a${s}b\` is the folder b in the folder a. It begins as \`start\`, which is written this way. Each of \`paths\` changes it in turn: a path that begins with \`${s}\` starts at the root, any other one at the current folder. Its parts are separated by one or more \`${s}\`. The part \`.\` changes nothing, \`..\` leads to the folder above, every other part is the name of a folder to enter. ${EXTRA_PARTS[extra]} ${
        aboveRoot === 'stays'
          ? 'Above the root is the root.'
          : 'A path that leads above the root at any point is refused as a whole: the current folder stays as it was.'
      } An empty path changes nothing.

      Return the list of the current folders after each path. There are at most 2000 paths.`,
    reference(start: string, paths: string[]) {
      let current = start.split(s).filter(Boolean);
      return paths.map((path) => {
        const next = path.startsWith(s) ? [] : [...current];
        let refused = false;
        let previous = '.';
        for (const written of path.split(s).filter(Boolean)) {
          const part: string = extra === 'again' && written === '=' ? previous : written;
          previous = part;
          const up = part === '..' ? 1 : extra === 'dots' && part === '...' ? 2 : 0;
          if (up > next.length) refused = true;
          if (up > 0) next.splice(Math.max(0, next.length - up));
          else if (part !== '.') next.push(part);
        }
        if (!(refused && aboveRoot === 'refused')) current = next;
        return s + current.join(s);
      });
    },
    python: `
      def solve(start, paths):
          current = [part for part in start.split("${s}") if part]
          result = []
          for path in paths:
              folder = [] if path.startswith("${s}") else list(current)
              allowed = True
              previous = "."
              for part in path.split("${s}"):
                  if not part:
                      continue
                  ${extra === 'again' ? 'if part == "=":\n                      part = previous\n                  previous = part' : ''}
                  ups = ${extra === 'dots' ? '{"..": 1, "...": 2}' : '{"..": 1}'}.get(part, 0)
                  for _ in range(ups):
                      if folder:
                          folder.pop()
                      else:
                          allowed = ${aboveRoot === 'stays' ? 'True' : 'False'}
                  if part != "." and ups == 0:
                      folder.append(part)
              if allowed:
                  current = folder
              result.append("${s}" + "${s}".join(current))
          return result`,
    mistakes: [
      [`[] if path.startswith("${s}") else list(current)`, 'list(current)'],
      ['if not part:\n', 'if False:\n'],
      ...(aboveRoot === 'refused' ? [['allowed = False', 'allowed = True'] as [string, string]] : []),
    ],
    inputs: (random) => [
      [`${s}home`, ['ada', `..${s}ken`, `${s}etc`, '..']],
      [s, ['..', `a${s}${s}b`, `.${s}...${s}c`, '']],
      [`${s}x${s}y`, [`=${s}z${s}=${s}=`, `..${s}=`, `${s}${s}`]],
      [s, []],
      [s, [`a${s}..${s}..${s}b`, 'c']],
      [`${s}a${s}b${s}c`, ['...', '....', '.', `...${s}..${s}q`]],
      ...times(6, () => folderPaths(random, s, random.integer(3, 20))),
      folderPaths(random, s, 900),
    ],
  }),
);

function folderPaths(random: SeededRandom, s: string, count: number): Json[] {
  const part = () => random.pick(['a', 'b', 'src', '..', '..', '.', '...', '=', '']);
  return [`${s}home${s}ada`, times(count, () => (random.next() < 0.15 ? s : '') + times(random.integer(1, 4), part).join(s))];
}
