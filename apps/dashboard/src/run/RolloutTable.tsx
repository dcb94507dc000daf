import {
  createColumnHelper,
  createSortedRowModel,
  rowSortingFeature,
  type SortingState,
  tableFeatures,
  useTable,
} from '@tanstack/react-table';
import { useVirtualizer } from '@tanstack/react-virtual';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import type { RolloutRow } from '@palestra/protocol';
import { type ReactNode, useEffect, useMemo, useRef } from 'react';
import { formatCount, plural, UNKNOWN } from '../format/number.ts';
import { formatDuration } from '../format/time.ts';
import { Age } from '../frame/Age.tsx';
import { useKeys } from '../frame/keyboard.ts';
import { RewardCell } from '../frame/Reward.tsx';
import { useRowFocus } from '../frame/rowFocus.ts';
import { Stop } from '../frame/Stop.tsx';
import { successThreshold } from './interval.ts';
import { taskLabel } from './task.ts';

const rowHeight = 28;
const features = tableFeatures({ rowSortingFeature, sortedRowModel: createSortedRowModel() });
const helper = createColumnHelper<typeof features, RolloutRow>();
const missing = { sortUndefined: 'last', sortDescFirst: true } as const;

/** Accessors return undefined for what is not known: it sorts last in both directions and is drawn as `–`. */
const columns = helper.columns([
  helper.accessor((row) => row.task_index ?? undefined, { id: 'task', header: 'Task', sortUndefined: 'last', sortDescFirst: false }),
  helper.accessor((row) => row.rolloutName ?? undefined, { id: 'name', header: 'Name', sortUndefined: 'last', sortDescFirst: false }),
  helper.accessor((row) => row.step ?? undefined, { id: 'step', header: 'Step', ...missing }),
  helper.accessor((row) => row.reward ?? undefined, { id: 'reward', header: 'Reward', ...missing }),
  helper.accessor('turns', { header: 'Turns', sortDescFirst: true }),
  helper.accessor('num_tool_calls', { id: 'calls', header: 'Calls', sortDescFirst: true }),
  helper.accessor('num_messages', { id: 'messages', header: 'Messages', sortDescFirst: true }),
  helper.accessor((row) => row.stop ?? undefined, { id: 'stop', header: 'Stop', sortUndefined: 'last', sortDescFirst: false }),
  helper.accessor('state', { header: 'State', sortDescFirst: false }),
  helper.accessor((row) => Date.parse(row.updated_at) - Date.parse(row.created_at), { id: 'span', header: 'Span', sortDescFirst: true }),
  helper.accessor('created_at', { id: 'time', header: 'Received', sortDescFirst: true }),
]);
const numeric = new Set(['step', 'turns', 'calls', 'messages', 'span', 'time']);
const grid = 'grid-cols-[96px_minmax(180px,1fr)_52px_168px_56px_56px_76px_112px_84px_76px_88px]';

const parseSort = (text: string | undefined): SortingState => (text ? [{ id: text.replace(/^-/, ''), desc: text.startsWith('-') }] : []);

function State({ state }: { state: RolloutRow['state'] }) {
  if (state !== 'live') return <span className="text-ink-3">{state}</span>;
  return (
    <span className="flex items-center gap-2">
      <span className="live-dot" /> live
    </span>
  );
}

interface Drawing {
  solved: (reward: number) => boolean;
  scale: number;
}
const draw: Record<string, (row: RolloutRow, drawing: Drawing) => ReactNode> = {
  task: (row) => <span className="strong">{row.task_index === null ? UNKNOWN : taskLabel(row)}</span>,
  name: (row) => <span className="text-ink-2">{row.rolloutName ?? UNKNOWN}</span>,
  step: (row) => row.step ?? UNKNOWN,
  reward: (row, { solved, scale }) => <RewardCell reward={row.reward} solved={solved} scale={scale} />,
  turns: (row) => formatCount(row.turns),
  calls: (row) => formatCount(row.num_tool_calls),
  messages: (row) => formatCount(row.num_messages),
  stop: (row) => <Stop stop={row.stop} />,
  state: (row) => <State state={row.state} />,
  span: (row) => <span className="text-ink-3">{formatDuration(Date.parse(row.updated_at) - Date.parse(row.created_at))}</span>,
  time: (row) => (
    <span className="text-ink-3">
      <Age iso={row.created_at} />
    </span>
  ),
};

/** The rollouts of a run as a dense list: every row a link, sorted by the URL's `sort`, only what is in view in the page. */
export function RolloutTable({ rows, total, more }: { rows: RolloutRow[]; total: number; more: (() => unknown) | null }) {
  const { sort, q } = useSearch({ from: '/$org/runs/$run' });
  const navigate = useNavigate({ from: '/$org/runs/$run' });
  const sorting = useMemo(() => parseSort(sort), [sort]);
  const shown = useMemo(() => {
    const needle = q?.toLowerCase();
    if (!needle) return rows;
    return rows.filter((row) =>
      `${taskLabel(row)} ${row.rolloutName ?? ''} ${row.stop ?? ''} ${row.environment ?? ''}`.toLowerCase().includes(needle),
    );
  }, [rows, q]);
  const table = useTable({ features, columns, data: shown, state: { sorting }, enableMultiSort: false });
  const drawing = useMemo<Drawing>(() => {
    const largest = rows.reduce((size, row) => Math.max(size, row.reward ?? 0), 0);
    return { solved: successThreshold(rows).solved, scale: largest > 0 ? Math.max(1, largest) : 1 };
  }, [rows]);

  const scroller = useRef<HTMLDivElement>(null);
  const find = useRef<HTMLInputElement>(null);
  const sorted = table.getRowModel().rows;
  // oxlint-disable-next-line react/incompatible-library -- no React Compiler here; nothing memoises what this returns
  const list = useVirtualizer({
    count: sorted.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 12,
  });
  const items = list.getVirtualItems();
  const lastInView = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (more && lastInView > sorted.length - 50) more();
  }, [more, lastInView, sorted.length]);
  const move = useRowFocus(scroller);
  useKeys({ j: () => move(1), k: () => move(-1), '/': () => find.current?.focus() });

  const sortBy = (id: string, descFirst: boolean) => {
    const now = sorting[0];
    const next = now?.id !== id ? (descFirst ? `-${id}` : id) : now.desc === descFirst ? (descFirst ? id : `-${id}`) : undefined;
    void navigate({ search: (previous) => ({ ...previous, sort: next }), replace: true });
  };

  return (
    <section aria-label="Rollouts" className="flex min-h-0 flex-1 flex-col">
      <div className="flex h-[36px] flex-none items-center gap-3 border-b border-line px-4">
        <h2 className="strong">Rollouts</h2>
        <span className="label">
          {q ? `${formatCount(shown.length)} of ${formatCount(rows.length)}` : plural(rows.length, 'rollout')}
          {total > rows.length ? `, newest of ${formatCount(total)}` : ''}
        </span>
        <span className="flex-1" />
        <input
          ref={find}
          type="search"
          className="input w-[220px]"
          aria-label="Filter by task, name, stop or environment"
          placeholder="Filter by task, name, stop  /"
          defaultValue={q}
          onChange={(event) =>
            void navigate({ search: (previous) => ({ ...previous, q: event.target.value || undefined }), replace: true })
          }
        />
      </div>
      <div ref={scroller} className="min-h-[168px] flex-1 overflow-auto max-[760px]:max-h-[70vh]">
        <div role="table" aria-label="Rollouts of the run" aria-rowcount={sorted.length + 1} className="min-w-[1040px]">
          <div role="row" className={`sticky top-0 z-10 grid border-b border-line bg-paper-0 px-2 ${grid}`}>
            {table.getHeaderGroups()[0]!.headers.map(({ id, column }) => (
              <span
                key={id}
                role="columnheader"
                aria-sort={sorting[0]?.id !== id ? 'none' : sorting[0].desc ? 'descending' : 'ascending'}
                className={`head-cell ${numeric.has(id) ? 'justify-end' : ''}`}
              >
                <button
                  type="button"
                  className={`hover:text-ink-1 ${sorting[0]?.id === id ? 'text-ink-1 strong' : ''}`}
                  onClick={() => sortBy(id, column.columnDef.sortDescFirst === true)}
                >
                  {String(column.columnDef.header)}
                  {sorting[0]?.id === id && <span aria-hidden="true">{sorting[0].desc ? ' ↓' : ' ↑'}</span>}
                </button>
              </span>
            ))}
          </div>
          <div role="rowgroup" className="relative" style={{ height: list.getTotalSize() }}>
            {items.map((item) => {
              const row = sorted[item.index]!.original;
              return (
                <Link
                  key={row.id}
                  to="/rollout/$id"
                  params={{ id: row.id }}
                  preload={false}
                  role="row"
                  aria-rowindex={item.index + 2}
                  data-row
                  className={`row absolute inset-x-0 top-0 px-2 ${grid}`}
                  style={{ transform: `translateY(${item.start}px)` }}
                >
                  {columns.map((column) => {
                    const id = String(column.id ?? ('accessorKey' in column ? column.accessorKey : ''));
                    return (
                      <span
                        key={id}
                        role="cell"
                        className={`cell ${numeric.has(id) ? 'num' : ''}`}
                        title={id === 'name' ? (row.rolloutName ?? undefined) : undefined}
                      >
                        {draw[id]!(row, drawing)}
                      </span>
                    );
                  })}
                </Link>
              );
            })}
          </div>
          {sorted.length === 0 && <p className="p-4 text-ink-3">No rollout matches “{q}”.</p>}
        </div>
      </div>
    </section>
  );
}
