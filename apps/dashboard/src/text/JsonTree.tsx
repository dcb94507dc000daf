import { type KeyboardEvent, memo, useMemo, useRef, useState } from 'react';
import { formatCount } from '../format/number.ts';
import { CopyLink } from '../frame/CopyLink.tsx';
import { isNode, leafText, previewNode, type Range, rowsOf, type TreeRow } from './json-tree.ts';
import { PlainText } from './PlainText.tsx';

/** Deeper rows are not indented further. */
const MAX_INDENTED = 24;
const NO_HITS: ReadonlyMap<object, number> = new Map();

function Leaf({ value }: { value: unknown }) {
  if (typeof value === 'string')
    return (
      <span className="text-[var(--role-user)]">
        "<PlainText text={value} />"
      </span>
    );
  return <span className={typeof value === 'number' ? 'text-[var(--role-tool)]' : 'text-environment'}>{leafText(value)}</span>;
}

type ValueRow = Extract<TreeRow, { kind: 'value' }>;

/** `[]` or `{}` around the size of a node. */
const sizeText = (node: unknown, size: number) => (Array.isArray(node) ? `[ ${formatCount(size)} ]` : `{ ${formatCount(size)} }`);

function Value({ row }: { row: ValueRow }) {
  const { name, value, open, size } = row;
  return (
    <>
      {name !== null && (
        <span className="text-ink-3">
          <PlainText text={String(name)} />
          {': '}
        </span>
      )}
      {!isNode(value) ? (
        <Leaf value={value} />
      ) : (
        <span className="text-ink-3">{open ? sizeText(value, size) : <PlainText text={previewNode(value)} />}</span>
      )}
    </>
  );
}

/** Copies the value and the path of a row. */
function RowActions({ row: { id, value, depth }, pointed }: { row: ValueRow; pointed: boolean }) {
  return (
    <span
      className={`absolute top-0 gap-3 bg-paper-2 px-[6px] font-sans text-[11px] group-focus-within:flex ${pointed ? 'flex' : 'hidden'} ${depth === 0 ? 'right-[100px]' : 'right-0'}`}
      onClick={(event) => event.stopPropagation()}
    >
      <CopyLink label="Copy value" text={() => (typeof value === 'string' ? value : JSON.stringify(value, null, 2))} />
      <CopyLink label="Copy path" name={`Copy path ${id}`} text={() => id} />
    </span>
  );
}

interface JsonTreeProps {
  value: unknown;
  /** Nodes down to this depth are open at first. */
  openLevels?: number;
  /** Nodes to open because a search found something below them (`findInTree`). */
  hits?: ReadonlyMap<object, number>;
}

/**
 * An untrusted JSON value as a tree. Parts that are closed are not rendered. Arrow keys move between the rows, open and close them (the
 * tree pattern of the ARIA Authoring Practices Guide).
 */
export const JsonTree = memo(function JsonTree({ value, openLevels = 2, hits = NO_HITS }: JsonTreeProps) {
  const list = useRef<HTMLDivElement>(null);
  const [toggled, setToggled] = useState<ReadonlyMap<object, boolean>>(new Map());
  const [ranges, setRanges] = useState<ReadonlyMap<object, Range>>(new Map());
  const [shownHits, setShownHits] = useState(hits);
  if (shownHits !== hits) {
    // A new search opens what the reader closed.
    setShownHits(hits);
    setToggled(new Map([...toggled].filter(([node, open]) => open || !hits.has(node))));
    setRanges(new Map([...ranges].filter(([node]) => !hits.has(node))));
  }
  const [active, setActive] = useState('$');
  const [pointed, setPointed] = useState<string | null>(null);
  const rows = useMemo(() => rowsOf(value, { openLevels, toggled, ranges, hits }), [value, openLevels, toggled, ranges, hits]);
  const activeRow = Math.max(
    0,
    rows.findIndex(({ id }) => id === active),
  );

  const focus = (at: number) => list.current?.querySelectorAll<HTMLElement>('[role=treeitem]')[at]?.focus();
  const act = (row: TreeRow) => {
    if (row.kind === 'more') setRanges(new Map(ranges).set(row.of, row.range));
    else if (row.open !== null) setToggled(new Map(toggled).set(row.value as object, !row.open));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.target as HTMLElement).matches('[role=treeitem]')) return;
    const row = rows[activeRow]!;
    const open = row.kind === 'value' ? row.open : null;
    const parent = rows.slice(0, activeRow).findLastIndex(({ depth }) => depth < row.depth);
    const actions: Record<string, () => void> = {
      ArrowDown: () => focus(activeRow + 1),
      ArrowUp: () => focus(activeRow - 1),
      ArrowRight: () => {
        if (open === false) act(row);
        else if (open) focus(activeRow + 1);
      },
      ArrowLeft: () => (open ? act(row) : focus(parent)),
      Home: () => focus(0),
      End: () => focus(rows.length - 1),
      Enter: () => act(row),
      ' ': () => act(row),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  };
  return (
    <div
      ref={list}
      role="tree"
      aria-label="JSON"
      className="mono whitespace-pre-wrap break-words"
      onKeyDown={onKeyDown}
      onPointerLeave={() => setPointed(null)}
    >
      {rows.map((row, at) => (
        <div
          key={row.id}
          role="treeitem"
          aria-level={row.depth + 1}
          aria-expanded={row.kind === 'value' ? (row.open ?? undefined) : undefined}
          tabIndex={at === activeRow ? 0 : -1}
          onFocus={() => setActive(row.id)}
          onPointerEnter={() => setPointed(row.id)}
          onClick={() => getSelection()?.isCollapsed !== false && act(row)}
          className={`group relative rounded-[2px] hover:bg-paper-2 focus-within:bg-paper-2 ${row.kind === 'value' && row.open === null ? '' : 'cursor-pointer'} ${row.kind === 'value' && row.open === false ? 'truncate' : ''}`}
          style={{ paddingLeft: 14 + 14 * Math.min(row.depth, MAX_INDENTED) }}
        >
          {row.kind === 'more' ? (
            <span className="link font-sans">Show {formatCount(row.count)} more</span>
          ) : (
            <>
              {row.open !== null && (
                <span aria-hidden="true" className="absolute ml-[-14px] text-ink-3">
                  {row.open ? '▾' : '▸'}
                </span>
              )}
              <Value row={row} />
              {(at === activeRow || pointed === row.id) && <RowActions row={row} pointed={pointed === row.id} />}
            </>
          )}
        </div>
      ))}
    </div>
  );
});
