import stringWidth from 'string-width';
import { coloured } from './colour.ts';
import { printable } from './printable.ts';

export type Cell = string | number | null;

/** A column is not made narrower than this. */
const MIN_WIDTH = 8;
const GAP = 2;

/** Lines of columns as wide as their widest cell, or narrower if they do not fit into `width` characters. Longer cells end in "…". */
export function tableLines(head: readonly string[], rows: readonly (readonly Cell[])[], width = Infinity): string[] {
  const cells = [head, ...rows.map((row) => row.map((cell) => printable(String(cell ?? '-'))))];
  const widths = fit(
    head.map((_, column) => Math.max(...cells.map((row) => stringWidth(row[column]!)))),
    width,
  );
  return cells.map((row) =>
    row
      .map((cell, column) => pad(cut(cell, widths[column]!), widths[column]!))
      .join(' '.repeat(GAP))
      .trimEnd(),
  );
}

/** Prints a table, as wide as the terminal at most. Output that is no terminal has whole cells. */
export function printTable(head: readonly string[], rows: readonly (readonly Cell[])[]): void {
  const [first, ...others] = tableLines(head, rows, process.stdout.isTTY ? process.stdout.columns : Infinity);
  process.stdout.write(`${[coloured(process.stdout, 'bold', first!), ...others].join('\n')}\n`);
}

/** Takes characters from the widest column until the columns fit, or all have the minimum width. */
function fit(widths: number[], width: number): number[] {
  const fitted = [...widths];
  let surplus = fitted.reduce((sum, one) => sum + one, GAP * (fitted.length - 1)) - width;
  while (surplus > 0) {
    const widest = Math.max(...fitted);
    if (widest <= MIN_WIDTH) break;
    // Cut the widest columns to the next width in one step.
    const next = Math.max(MIN_WIDTH, ...fitted.filter((one) => one < widest));
    const columns = fitted.flatMap((one, column) => (one === widest ? [column] : []));
    const each = Math.min(widest - next || widest - MIN_WIDTH, Math.ceil(surplus / columns.length));
    for (const column of columns) fitted[column]! -= each;
    surplus -= each * columns.length;
  }
  return fitted;
}

const pad = (text: string, width: number): string => text + ' '.repeat(Math.max(0, width - stringWidth(text)));

/** The text if it has at most `width` columns, else its beginning and "…". Does not split characters. */
function cut(text: string, width: number): string {
  if (stringWidth(text) <= width) return text;
  let kept = '';
  let taken = 0;
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    taken += stringWidth(segment);
    if (taken > width - 1) break;
    kept += segment;
  }
  return `${kept}…`;
}
