import { type JsonValue, stringifyJson } from '@palestra/protocol';
import { type Cell, printTable } from './table.ts';
import type { OutputFormat } from './output-format.ts';

export { printable, printableLines } from './printable.ts';
export { printTable };

export interface Printed {
  output: OutputFormat;
}

export type Column<Row> = readonly [heading: string, cell: (row: Row) => Cell];

/** Prints a list: all fields of the API, or the columns of a table. `note` is for people, so it goes to stderr. */
export async function printList<Row>(
  { output }: Printed,
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  note?: string,
): Promise<void> {
  if (output === 'table') {
    printTable(
      columns.map(([heading]) => heading),
      rows.map((row) => columns.map(([, cell]) => cell(row))),
    );
    if (note !== undefined) process.stderr.write(`${note}\n`);
  } else await printData(output, rows);
}

/** Prints one value: all fields of the API, or what `text` writes for people. */
export async function printOne({ output }: Printed, value: unknown, text: () => void | Promise<void>): Promise<void> {
  await (output === 'table' ? text() : printData(output, value));
}

/** JSON, JSON lines (a line per item of a list) or YAML, with every number as the server wrote it in JSON. */
async function printData(output: Exclude<OutputFormat, 'table'>, value: unknown): Promise<void> {
  const json = (one: unknown) => stringifyJson(one as JsonValue);
  if (output === 'jsonl') {
    for (const one of Array.isArray(value) ? value : [value]) process.stdout.write(`${withoutControls(json(one))}\n`);
    return;
  }
  const text = json(value);
  if (output === 'json') return void process.stdout.write(`${withoutControls(indent(text))}\n`);
  const { stringify } = await import('yaml');
  process.stdout.write(stringify(JSON.parse(text), { lineWidth: 0, aliasDuplicateObjects: false }).replaceAll(C1_CONTROLS, '\uFFFD'));
}

/** Terminals may obey these characters, which JSON does not escape. */
const C1_CONTROLS = /[\u007f-\u009f]/g;
const withoutControls = (json: string): string =>
  json.replaceAll(C1_CONTROLS, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** Indents JSON text by two spaces. Works on the text, so that every number keeps its written form. */
function indent(json: string): string {
  let depth = 0;
  return json.replaceAll(/"(?:[^"\\]|\\.)*"|[{[]\s*[}\]]|[{}[\],:]|[^"{}[\],:]+/g, (token) => {
    if (token === '{' || token === '[') return `${token}\n${'  '.repeat((depth += 1))}`;
    if (token === '}' || token === ']') return `\n${'  '.repeat((depth -= 1))}${token}`;
    if (token === ',') return `,\n${'  '.repeat(depth)}`;
    return token === ':' ? ': ' : token;
  });
}
