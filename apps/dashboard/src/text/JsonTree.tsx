import { memo, useState } from 'react';
import { formatCount } from '../format/number.ts';
import { PlainText } from './PlainText.tsx';

/** Children of a node that are rendered at first. */
const PAGE_SIZE = 100;

function Leaf({ value }: { value: unknown }) {
  if (typeof value === 'string')
    return (
      <span className="text-[var(--role-user)]">
        "<PlainText text={value} />"
      </span>
    );
  return <span className={typeof value === 'number' ? 'text-[var(--role-tool)]' : 'text-environment'}>{String(value)}</span>;
}

const sizeOf = (value: object) => (Array.isArray(value) ? value.length : Object.keys(value).length);
const summaryOf = (value: object) => (Array.isArray(value) ? `[ ${formatCount(value.length)} ]` : `{ ${formatCount(sizeOf(value))} }`);

function Node({ name, value, depth, openLevels }: { name: string | null; value: unknown; depth: number; openLevels: number }) {
  const [open, setOpen] = useState(depth < openLevels);
  const [limit, setLimit] = useState(PAGE_SIZE);
  const label = name !== null && (
    <span className="text-ink-3">
      <PlainText text={name} />
      {': '}
    </span>
  );
  if (value === null || typeof value !== 'object' || sizeOf(value) === 0)
    return (
      <div className="pl-[14px]">
        {label}
        {value !== null && typeof value === 'object' ? Array.isArray(value) ? '[]' : '{}' : <Leaf value={value} />}
      </div>
    );
  const entries = open ? Object.entries(value).slice(0, limit) : [];
  const rest = sizeOf(value) - entries.length;
  return (
    <div>
      <button type="button" aria-expanded={open} onClick={() => setOpen(!open)} className="text-left hover:bg-paper-2">
        <span aria-hidden="true" className="inline-block w-[14px] text-ink-3">
          {open ? '▾' : '▸'}
        </span>
        {label}
        {!open && <span className="text-ink-3">{summaryOf(value)}</span>}
        {open && name === null && <span className="sr-only">{summaryOf(value)}</span>}
      </button>
      {open && (
        <div className="pl-[14px]">
          {entries.map(([key, child]) => (
            <Node key={key} name={Array.isArray(value) ? null : key} value={child} depth={depth + 1} openLevels={openLevels} />
          ))}
          {rest > 0 && (
            <button type="button" className="link pl-[14px] font-sans" onClick={() => setLimit(limit + 10 * PAGE_SIZE)}>
              Show {formatCount(rest)} more
            </button>
          )}
        </div>
      )}
    </div>
  );
}

/** An untrusted JSON value as a tree, open down to `openLevels`. Collapsed parts are not rendered. */
export const JsonTree = memo(function JsonTree({ value, openLevels = 2 }: { value: unknown; openLevels?: number }) {
  return (
    <div className="mono whitespace-pre-wrap break-words">
      <Node name={null} value={value} depth={0} openLevels={openLevels} />
    </div>
  );
});
