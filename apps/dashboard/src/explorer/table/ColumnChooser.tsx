import { Popover } from '../../frame/Popover.tsx';
import { COLUMN_IDS, COLUMN_NAMES, columnIds } from './columns.tsx';

/** Chooses the columns of the table. They are in the address; by default the table shows the columns that fit. */
export function ColumnChooser({ cols, onCols }: { cols: string | undefined; onCols: (cols: string | undefined) => void }) {
  const chosen = columnIds(cols, innerWidth);
  const toggle = (id: (typeof COLUMN_IDS)[number]) => {
    const next = COLUMN_IDS.filter((one) => (one === id ? !chosen.includes(one) : chosen.includes(one)));
    if (next.length > 0) onCols(next.join(','));
  };
  return (
    <Popover label="Columns" button="Columns" align="end">
      <div className="grid grid-cols-2 gap-x-3">
        {COLUMN_IDS.map((id) => (
          <label key={id} className="flex h-[26px] cursor-pointer items-center gap-2">
            <input type="checkbox" className="accent-[var(--accent)]" checked={chosen.includes(id)} onChange={() => toggle(id)} />
            <span className="truncate">{COLUMN_NAMES[id]}</span>
          </label>
        ))}
      </div>
      <button type="button" className="button mt-2" disabled={cols === undefined} onClick={() => onCols(undefined)}>
        Reset
      </button>
    </Popover>
  );
}
