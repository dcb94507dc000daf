import type { RolloutDiff } from '@palestra/protocol';

export type Action = NonNullable<RolloutDiff['rows'][number]['a']>;

export interface Cell {
  action: Action;
  /** The centre did the same here. */
  same: boolean;
}
export interface BoardRow {
  /** One a lane; null: it did nothing here. */
  cells: (Cell | null)[];
}
export interface Board {
  rows: BoardRow[];
  /** First row at which a lane parts from the centre; null while all do the same. */
  firstDivergence: number | null;
  /** Of each lane, its own first row that is not the centre's; null for one that never parts, and for the centre. */
  partsAt: (number | null)[];
}

interface Placed {
  /** What the lane did in the row of each centre action. */
  atCentre: Map<number, Cell>;
  /** What it did besides, before the centre's action of that number. */
  before: Map<number, Action[]>;
}

/** Where the lane did something else, that stands in the rows of what the centre did instead; what is left over, behind them. */
function place(rows: RolloutDiff['rows']): Placed {
  const atCentre = new Map<number, Cell>();
  const before = new Map<number, Action[]>();
  let centre = 0;
  let free: number[] = [];
  let other: Action[] = [];
  const settle = () => {
    other.slice(0, free.length).forEach((action, i) => atCentre.set(free[i]!, { action, same: false }));
    if (other.length > free.length) before.set(centre, other.slice(free.length));
    [free, other] = [[], []];
  };
  for (const { a, b, same } of rows) {
    if (same && b) {
      settle();
      atCentre.set(centre, { action: b, same: true });
      centre += 1;
      continue;
    }
    if (a) {
      free.push(centre);
      centre += 1;
    }
    if (b) other.push(b);
  }
  settle();
  return { atCentre, before };
}

/**
 * All lanes side by side: each was aligned with the same centre (the `a` of its comparison) by a longest common subsequence of tool and
 * arguments, and the centre's actions are the rows they share. A lane whose comparison is not here yet is empty and parts nowhere.
 */
export function boardOf(alignments: readonly (RolloutDiff | undefined)[]): Board {
  const known = alignments.find((one) => one !== undefined);
  if (!known) return { rows: [], firstDivergence: null, partsAt: alignments.map(() => null) };
  const centre = known.rows.filter(({ a }) => a !== null).length;
  const placed = alignments.map((one) => (one ? place(one.rows) : null));
  const rows: BoardRow[] = [];
  for (let at = 0; at <= centre; at += 1) {
    const extra = Math.max(0, ...placed.map((lane) => lane?.before.get(at)?.length ?? 0));
    for (let i = 0; i < extra; i += 1) {
      const cellOf = (lane: Placed | null) => {
        const action = lane?.before.get(at)?.[i];
        return action ? { action, same: false } : null;
      };
      rows.push({ cells: placed.map(cellOf) });
    }
    if (at < centre) rows.push({ cells: placed.map((lane) => lane?.atCentre.get(at) ?? null) });
  }
  const isCentreRow = rows.map((row) => row.cells.some((cell) => cell?.same));
  const partsAt = placed.map((lane, column) => {
    if (!lane) return null;
    const at = rows.findIndex(({ cells }, row) => (cells[column] ? !cells[column].same : isCentreRow[row]));
    return at < 0 ? null : at;
  });
  const parted = partsAt.filter((at) => at !== null);
  return { rows, firstDivergence: parted.length === 0 ? null : Math.min(...parted), partsAt };
}

/** A letter for each tool: its initial, else the next letter of its name that is free, else a figure. */
export function glyphsOf(tools: readonly string[]): ReadonlyMap<string, string> {
  const glyphs = new Map<string, string>();
  const taken = new Set<string>();
  for (const tool of tools.toSorted()) {
    const letters = [...tool.replaceAll(/[^\p{L}\p{N}]/gu, '')];
    const candidates = [...letters.map((letter) => letter.toUpperCase()), ...letters, ...'0123456789'];
    const glyph = candidates.find((letter) => !taken.has(letter)) ?? '?';
    taken.add(glyph);
    glyphs.set(tool, glyph);
  }
  return glyphs;
}

export const ANSWER = '¶';
