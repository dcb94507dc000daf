/** The visible rows of a JSON tree. Nothing below a closed node is read, so a value of any size can be shown. */

/** Children of an open node that are shown at first, and that "Show more" adds. */
export const PAGE_SIZE = 50;
const MORE = 1_000;
/** Rows. When there are as many, further nodes are closed until the reader opens them. */
const MAX_OPENED = 60;
const PREVIEW_CHARACTERS = 160;

/** First shown child, and the one after the last. */
export type Range = readonly [from: number, to: number];

export type TreeRow = {
  /** Id of the row: the path of its value, or of its list with a suffix. */
  id: string;
  depth: number;
} & (
  | { kind: 'value'; name: string | number | null; value: unknown; open: boolean | null; size: number }
  | { kind: 'more'; of: object; count: number; range: Range }
);

export interface TreeState {
  /** Nodes down to this depth are open unless the reader closed them. */
  openLevels: number;
  /** What the reader opened and closed. */
  toggled: ReadonlyMap<object, boolean>;
  ranges: ReadonlyMap<object, Range>;
  /** Nodes with a hit of the search below them, with the index of the first child that leads to it. */
  hits: ReadonlyMap<object, number>;
}

export const isNode = (value: unknown): value is object => value !== null && typeof value === 'object';
export const sizeOf = (value: object): number => (Array.isArray(value) ? value.length : Object.keys(value).length);

/** The JSONPath of a child (RFC 9535). */
export const pathOf = (parent: string, key: string | number): string =>
  typeof key === 'number' ? `${parent}[${key}]` : /^[A-Za-z_]\w*$/.test(key) ? `${parent}.${key}` : `${parent}[${JSON.stringify(key)}]`;

/** The shown children: the page with the first hit if it is far from the beginning. */
function rangeOf(value: object, { ranges, hits }: TreeState): Range {
  const chosen = ranges.get(value);
  if (chosen) return chosen;
  const hit = hits.get(value) ?? 0;
  const from = hit < MORE ? 0 : hit - (hit % PAGE_SIZE);
  return [from, Math.max(PAGE_SIZE, hit - (hit % PAGE_SIZE) + PAGE_SIZE)];
}

/** The rows that are visible, from top to bottom. */
export function rowsOf(root: unknown, state: TreeState): TreeRow[] {
  const rows: TreeRow[] = [];
  const add = (id: string, name: string | number | null, value: unknown, depth: number): void => {
    const size = isNode(value) ? sizeOf(value) : 0;
    if (!isNode(value) || size === 0) {
      rows.push({ id, depth, kind: 'value', name, value, open: null, size });
      return;
    }
    const byDefault = state.hits.has(value) || (depth < state.openLevels && rows.length < MAX_OPENED);
    const open = state.toggled.get(value) ?? byDefault;
    rows.push({ id, depth, kind: 'value', name, value, open, size });
    if (!open) return;
    const [from, to] = rangeOf(value, state);
    const more = (suffix: string, count: number, range: Range) => {
      if (count > 0) rows.push({ id: `${id} ${suffix}`, depth: depth + 1, kind: 'more', of: value, count, range });
    };
    more('earlier', from, [Math.max(0, from - MORE), to]);
    const keys = Array.isArray(value) ? null : Object.keys(value).slice(from, to);
    for (let i = from; i < Math.min(to, size); i += 1) {
      const key = keys ? keys[i - from]! : i;
      add(pathOf(id, key), key, (value as Record<string | number, unknown>)[key], depth + 1);
    }
    more('later', size - to, [from, to + MORE]);
  };
  add('$', null, root, 0);
  return rows;
}

/** The text that a leaf shows. */
export const leafText = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? 'null'));

const MAX_SEARCHED_DEPTH = 1_000;
/** Nodes with a name or a value below them that has the text, ignoring case. */
export function findInTree(root: unknown, text: string): ReadonlyMap<object, number> {
  const needle = text.toLowerCase();
  const hits = new Map<object, number>();
  const search = (value: unknown, depth: number): boolean => {
    if (!isNode(value)) return leafText(value).toLowerCase().includes(needle);
    if (depth > MAX_SEARCHED_DEPTH) return false;
    const inArray = Array.isArray(value);
    Object.entries(value).forEach(([key, child], index) => {
      const found = search(child, depth + 1) || (!inArray && key.toLowerCase().includes(needle));
      if (found && !hits.has(value)) hits.set(value, index);
    });
    return hits.has(value);
  };
  if (needle !== '') search(root, 0);
  return hits;
}

/** The beginning of a closed node as JSON. Reads only as much as it shows. */
export function previewNode(value: object): string {
  let text = '';
  const add = (child: unknown, depth: number): void => {
    if (text.length > PREVIEW_CHARACTERS) return;
    if (!isNode(child)) {
      text += JSON.stringify(typeof child === 'string' ? child.slice(0, PREVIEW_CHARACTERS) : child);
      return;
    }
    const [open, close] = Array.isArray(child) ? '[]' : '{}';
    if (depth > 3) {
      text += `${open}…${close}`;
      return;
    }
    text += open;
    let first = true;
    for (const key in child) {
      if (text.length > PREVIEW_CHARACTERS) break;
      if (!Object.hasOwn(child, key)) continue;
      text += first ? '' : ', ';
      first = false;
      if (!Array.isArray(child)) text += `${key.slice(0, PREVIEW_CHARACTERS)}: `;
      add((child as Record<string, unknown>)[key], depth + 1);
    }
    text += close;
  };
  add(value, 0);
  return text.length > PREVIEW_CHARACTERS ? `${text.slice(0, PREVIEW_CHARACTERS)}…` : text;
}
