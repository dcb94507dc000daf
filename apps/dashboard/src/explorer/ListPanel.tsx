import { parseQuery, type Query } from '@palestra/query';
import { useNavigate, useRouter } from '@tanstack/react-router';
import type { RolloutRow, RolloutSort } from '@palestra/protocol';
import { type ReactNode, useEffect, useMemo, useRef, useState } from 'react';
import { type FromList, type ListOrder, printOrder } from '../data/list-order.ts';
import { ApiError } from '../data/http.ts';
import { useMedia } from '../frame/media.ts';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { useRun } from '../run/context.ts';
import { columnIds, rolloutColumns } from './table/columns.tsx';
import { useRolloutPages } from './rollout-pages.ts';
import { PreviewPanel } from './PreviewPanel.tsx';
import { RolloutTable } from './table/RolloutTable.tsx';
import { RolloutSelection } from '../selection/RolloutSelection.tsx';
import { useRowSelection } from '../selection/useRowSelection.ts';
import type { HistoryEntry } from '../table/history-entry.ts';
import type { Solved } from './table/solved.ts';
import { Count, NewPill, StatusRow } from './StatusRow.tsx';

const SELECT_AFTER_MS = 120;
/** Between these widths the table needs the space of an empty preview. Below, readers open the preview themselves. */
const SHOWS_EMPTY_PREVIEW = '(min-width: 1400px), (max-width: 1099px)';
const idOf = ({ id }: RolloutRow): string => id;

interface Props {
  /** The query of the bar with the filter of the run. */
  q: string;
  valid: boolean;
  entry: HistoryEntry;
  solved: Solved;
  status: ReactNode;
  order: ListOrder;
  onOrder: (order: ListOrder) => void;
  cols: string | undefined;
  sel: string | null;
  /** Writes the selection to the address; resolves when it is there. */
  onSel: (id: string) => Promise<void>;
  preview: boolean;
  onHidePreview: () => void;
  onReload: () => void;
}

/** The table of the query's rollouts and the preview of the focused one. */
export function ListPanel(props: Props) {
  const { q, valid, entry, solved, status, order, onOrder, cols, sel, onSel, preview, onHidePreview, onReload } = props;
  const { run } = useRun();
  const navigate = useNavigate();
  const router = useRouter();
  const pages = useRolloutPages(run.id, q, order, entry.snapshot, valid);
  const [selected, setSelected] = useSelection(sel, onSel);
  const before = useBefore(entry, run.num_rollouts);
  const [width, holder] = useWidth();
  const selection = useRowSelection(pages.rows, idOf, `${entry.snapshot} ${q}`);
  const from = useMemo<FromList>(() => ({ q: q || undefined, sort: printOrder(order) ?? '-created_at' }), [q, order]);
  const columns = useMemo(() => rolloutColumns(columnIds(cols, width), solved, from), [cols, width, solved, from]);
  const byRegex = useMemo(() => valid && hasRegex(parseQuery(q)), [q, valid]);
  const open = (row: RolloutRow, newTab: boolean) => {
    const target = { to: '/rollout/$id', params: { id: row.id }, search: from } as const;
    if (newTab) window.open(router.buildLocation(target).href, '_blank', 'noopener');
    // The address must have the selected row before the next page opens, so that Back returns to it.
    else void onSel(row.id).then(() => navigate(target));
  };
  const showsEmpty = useMedia(SHOWS_EMPTY_PREVIEW);
  const refused = pages.error instanceof ApiError && pages.error.code === 'invalid_query' ? pages.error : null;
  return (
    <>
      <section aria-label="Rollouts" ref={holder} className="flex min-w-0 flex-1 flex-col">
        <StatusRow>
          {valid && !pages.error && <Count pages={pages} byRegex={byRegex} />}
          {status}
          {refused && <span className="truncate text-bad">▲ {refused.message.replace(/^query\.q\.\d+: /, '')}</span>}
          <span className="flex-1" />
          {valid && <NewPill q={q} pages={pages} before={before} onShow={onReload} />}
        </StatusRow>
        {pages.error && !refused ? (
          <ErrorState error={pages.error} retry={pages.retry} />
        ) : pages.loading ? (
          <SkeletonRows />
        ) : (
          <RolloutTable
            pages={pages}
            columns={columns}
            sort={order}
            onSort={(next) => onOrder({ id: next.id as RolloutSort, order: next.order })}
            selected={selected}
            onSelect={setSelected}
            onOpen={open}
            previewing={preview}
            saved={entry.saved}
            selection={selection}
            total={pages.total && !pages.total.atLeast && !byRegex ? pages.total.count : undefined}
            empty={valid && !refused && <Empty looking={!pages.complete} />}
          />
        )}
        <RolloutSelection selection={selection} q={q} more={!pages.complete || pages.rows.length > 1} />
      </section>
      {preview && (selected !== null || showsEmpty) && <PreviewPanel id={selected} from={from} solved={solved} onClose={onHidePreview} />}
    </>
  );
}

function Empty({ looking }: { looking: boolean }) {
  const { run } = useRun();
  return (
    <p className="p-4 text-ink-3">
      {looking
        ? 'No rollout found yet. The regex search continues.'
        : run.num_rollouts === 0
          ? 'This run has no rollouts yet.'
          : 'No rollout matches the query. Remove a clause, or include more steps, environments or phases.'}
    </p>
  );
}

const hasRegex = (query: Query): boolean =>
  query.clauses.some((clause) => {
    if (clause.kind === 'group') return clause.alternatives.some(hasRegex);
    return clause.kind === 'text' ? clause.value.kind === 'regex' : clause.values.some((value) => value.kind === 'regex');
  });

/** The selection: immediate in the page, and in the address after a pause. */
function useSelection(sel: string | null, onSel: (id: string) => Promise<void>): [string | null, (id: string) => void] {
  const [selected, setSelected] = useState(sel);
  const report = useRef(onSel);
  useEffect(() => {
    report.current = onSel;
  });
  useEffect(() => {
    if (selected === null || selected === sel) return;
    const timer = setTimeout(() => void report.current(selected), SELECT_AFTER_MS);
    return () => clearTimeout(timer);
  }, [selected, sel]);
  return [selected, setSelected];
}

const ROLLOUTS_KEY = 'rollouts of the run';

/** The number of rollouts of the run when the list was read. */
function useBefore({ saved }: HistoryEntry, now: number): number {
  const [before] = useState(() => saved.get(ROLLOUTS_KEY) ?? now);
  useEffect(() => {
    saved.set(ROLLOUTS_KEY, before);
  }, [saved, before]);
  return before;
}

function useWidth(): [number, (element: HTMLElement | null) => (() => void) | void] {
  const [width, setWidth] = useState(0);
  const [holder] = useState(() => (element: HTMLElement | null) => {
    if (!element) return;
    const observer = new ResizeObserver(([entry]) => setWidth(entry!.contentRect.width));
    observer.observe(element);
    return () => observer.disconnect();
  });
  return [width, holder];
}
