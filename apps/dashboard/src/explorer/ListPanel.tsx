import { parseQuery, type Query } from '@palestra/query';
import { useNavigate, useRouter } from '@tanstack/react-router';
import type { RolloutRow, RolloutSort } from '@palestra/protocol';
import { type ReactNode, useEffect, useMemo, useRef, useState } from 'react';
import { type FromList, type ListOrder, printOrder } from '../data/list-order.ts';
import { ApiError } from '../data/http.ts';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { useRun } from '../run/context.ts';
import { columnIds, rolloutColumns } from './table/columns.tsx';
import { useRolloutPages } from './pages.ts';
import { Peek } from './Peek.tsx';
import { RolloutTable } from './table/RolloutTable.tsx';
import type { Place } from '../table/restore.ts';
import type { Solved } from './table/solved.ts';
import { Count, NewPill, StatusRow } from './StatusRow.tsx';

const SELECT_AFTER_MS = 120;

interface Props {
  /** The effective query: that of the bar within the filter. */
  q: string;
  valid: boolean;
  place: Place;
  solved: Solved;
  status: ReactNode;
  order: ListOrder;
  onOrder: (order: ListOrder) => void;
  cols: string | undefined;
  sel: string | null;
  /** Resolves when the address says so. */
  onSel: (id: string) => Promise<void>;
  preview: boolean;
  onHidePreview: () => void;
  onReload: () => void;
}

/** The table of the query's rollouts, and beside it the one that has the focus. */
export function ListPanel(props: Props) {
  const { q, valid, place, solved, status, order, onOrder, cols, sel, onSel, preview, onHidePreview, onReload } = props;
  const { run } = useRun();
  const navigate = useNavigate();
  const router = useRouter();
  const pages = useRolloutPages(run.id, q, order, place.snapshot, valid);
  const [selected, setSelected] = useSelection(sel, onSel);
  const before = useBefore(place, run.num_rollouts);
  const [width, holder] = useWidth();
  const from = useMemo<FromList>(() => ({ q: q || undefined, sort: printOrder(order) ?? '-created_at' }), [q, order]);
  const columns = useMemo(() => rolloutColumns(columnIds(cols, width), solved, from), [cols, width, solved, from]);
  const byRegex = useMemo(() => valid && hasRegex(parseQuery(q)), [q, valid]);
  const open = (row: RolloutRow, newTab: boolean) => {
    const target = { to: '/rollout/$id', params: { id: row.id }, search: from } as const;
    if (newTab) window.open(router.buildLocation(target).href, '_blank', 'noopener');
    // Back returns to the row: the address must say it before another page follows.
    else void onSel(row.id).then(() => navigate(target));
  };
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
            peeking={preview}
            left={place.left}
            total={pages.total && !pages.total.atLeast && !byRegex ? pages.total.count : undefined}
            empty={valid && !refused && <Empty looking={!pages.complete} />}
          />
        )}
      </section>
      {preview && <Peek id={selected} from={from} solved={solved} onClose={onHidePreview} />}
    </>
  );
}

function Empty({ looking }: { looking: boolean }) {
  const { run } = useRun();
  return (
    <p className="p-4 text-ink-3">
      {looking
        ? 'None yet: the regex is still being looked for.'
        : run.num_rollouts === 0
          ? 'No rollout was uploaded to this run yet.'
          : 'No rollout matches the query. Remove a clause, or include more steps, environments or phases.'}
    </p>
  );
}

const hasRegex = (query: Query): boolean =>
  query.clauses.some((clause) => {
    if (clause.kind === 'group') return clause.alternatives.some(hasRegex);
    return clause.kind === 'text' ? clause.value.kind === 'regex' : clause.values.some((value) => value.kind === 'regex');
  });

/** The selection at once in the page, and in the address when it rests. */
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

const ROLLOUTS = 'rollouts of the run';

/** How many rollouts the run had when the list was read. */
function useBefore({ left }: Place, now: number): number {
  const [before] = useState(() => left.get(ROLLOUTS) ?? now);
  useEffect(() => {
    left.set(ROLLOUTS, before);
  }, [left, before]);
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
