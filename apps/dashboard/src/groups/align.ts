import type { RolloutDiff } from '@palestra/protocol';

export type Action = NonNullable<RolloutDiff['rows'][number]['a']>;

export interface Cell {
  action: Action;
  /** The centre has the same action in this row. */
  same: boolean;
}
export interface BoardRow {
  /** One per lane; null for no action. */
  cells: (Cell | null)[];
}
export interface Board {
  rows: BoardRow[];
  /** The first row in which a lane diverges from the centre; null if none does. */
  firstDivergence: number | null;
  /** The first diverging row of each lane; null for a lane that does not diverge, and for the centre. */
  partsAt: (number | null)[];
}

interface AlignedLane {
  /** The action of the lane in the row of each centre action. */
  atCentre: Map<number, Cell>;
  /** Extra actions of the lane before the centre action with this number. */
  before: Map<number, Action[]>;
}

/** Puts different actions of a lane into the rows of the centre actions they replace; the remaining ones follow as extra actions. */
function alignLane(rows: RolloutDiff['rows']): AlignedLane {
  const atCentre = new Map<number, Cell>();
  const before = new Map<number, Action[]>();
  let centre = 0;
  let free: number[] = [];
  let other: Action[] = [];
  const flush = () => {
    other.slice(0, free.length).forEach((action, i) => atCentre.set(free[i]!, { action, same: false }));
    if (other.length > free.length) before.set(centre, other.slice(free.length));
    [free, other] = [[], []];
  };
  for (const { a, b, same } of rows) {
    if (same && b) {
      flush();
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
  flush();
  return { atCentre, before };
}

/**
 * Combines the lanes. Each lane is aligned with the same centre (the `a` of its comparison) by a longest common subsequence of tool and
 * arguments; the actions of the centre are the shared rows. A lane whose comparison is loading is empty and does not diverge.
 */
export function boardOf(alignments: readonly (RolloutDiff | undefined)[]): Board {
  const known = alignments.find((one) => one !== undefined);
  if (!known) return { rows: [], firstDivergence: null, partsAt: alignments.map(() => null) };
  const centre = known.rows.filter(({ a }) => a !== null).length;
  const placed = alignments.map((one) => (one ? alignLane(one.rows) : null));
  const rows: BoardRow[] = [];
  for (let at = 0; at <= centre; at += 1) {
    const extra = Math.max(0, ...placed.map((lane) => lane?.before.get(at)?.length ?? 0));
    for (let i = 0; i < extra; i += 1) {
      const cellOf = (lane: AlignedLane | null) => {
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

/** A unique letter for each tool: its initial, else the next free letter of its name, else a digit. */
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
