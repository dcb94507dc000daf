import { type Query, QueryError } from '@palestra/query';
import { useNavigate, useRouter, useSearch } from '@tanstack/react-router';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { printOrder, readOrder } from '../data/list-order.ts';
import { AlertMe } from '../alerts/AlertMe.tsx';
import { ExportDialog } from '../exports/ExportDialog.tsx';
import { useKeys } from '../frame/keyboard.ts';
import { CreateQueueDialog } from '../review/CreateQueueDialog.tsx';
import { useRun } from '../run/context.ts';
import { ColumnChooser } from './table/ColumnChooser.tsx';
import { Facets } from './facets/Facets.tsx';
import { FindField } from './find/FindField.tsx';
import { FindPanel } from './find/FindPanel.tsx';
import { ListPanel } from './ListPanel.tsx';
import { useKnownValues } from './query/known-values.ts';
import { PanelToggle, usePanels } from './panels.tsx';
import { QueryBar, type QueryBarHandle } from './query/QueryBar.tsx';
import { effectiveQuery, readQuery } from './query/query-edit.ts';
import { useHistoryEntry } from '../table/history-entry.ts';
import { QueryProblem, FilterChips } from './StatusRow.tsx';
import { useSolved } from './table/solved.ts';
import { ViewsMenu } from './ViewsMenu.tsx';

const route = '/$org/runs/$run/rollouts';
const EVERYTHING: Query = { clauses: [], position: 0, length: 0 };
const PROBLEM_AFTER_MS = 400;

/** The error of a draft query, after a pause in typing. */
function useProblem(draft: string): QueryError | null {
  const [last, setLast] = useState<{ draft: string; problem: QueryError } | null>(null);
  useEffect(() => {
    const read = readQuery(draft);
    if (!(read instanceof QueryError)) return;
    const timer = setTimeout(() => setLast({ draft, problem: read }), PROBLEM_AFTER_MS);
    return () => clearTimeout(timer);
  }, [draft]);
  return last?.draft === draft ? last.problem : null;
}

/** The rollouts of the run: facets and text edit one query, the table lists its rollouts, and the panel previews the focused one. */
export function ExplorerPage() {
  const { run, filter } = useRun();
  const search = useSearch({ from: route });
  const navigate = useNavigate({ from: route });
  const q = search.q ?? '';
  const [draft, setDraft] = useState(q);
  const [seen, setSeen] = useState(q);
  if (seen !== q) {
    setSeen(q);
    setDraft(q);
  }
  const problem = useProblem(draft);
  const [writing, setWriting] = useState(false);
  const applied = useMemo(() => readQuery(q), [q]);
  const drafted = useMemo(() => readQuery(draft), [draft]);
  const query = !(drafted instanceof QueryError) ? drafted : !(applied instanceof QueryError) ? applied : EVERYTHING;
  const valid = !(applied instanceof QueryError);
  const effective = effectiveQuery(filter, q);
  const order = useMemo(() => readOrder(search.sort), [search.sort]);
  const mode = search.mode ?? 'text';
  const listed = search.find === undefined;
  const [reloads, setReloads] = useState(0);
  const entry = useHistoryEntry(JSON.stringify([run.id, effective, order, search.find, mode, reloads]));
  const known = useKnownValues(run.id, filter, entry.snapshot);
  const solved = useSolved(run.id);
  const [exporting, setExporting] = useState(false);
  const [reviewing, setReviewing] = useState(false);
  const [panels, togglePanel] = usePanels();

  const setQuery = useCallback(
    (text: string) => {
      setDraft(text);
      if (text !== q) void navigate({ search: (old) => ({ ...old, q: text || undefined, sel: undefined }) });
    },
    [navigate, q],
  );
  const setFind = (find: string, how: 'text' | 'regex') =>
    void navigate({ search: (old) => ({ ...old, find: find || undefined, mode: how === 'regex' ? 'regex' : undefined, sel: undefined }) });
  const { history } = useRouter();
  const [path] = useState(history.location.pathname);
  const select = useCallback(
    async (sel: string): Promise<void> => {
      // During a navigation to another page this would navigate back.
      if (history.location.pathname === path) await navigate({ search: (old) => ({ ...old, sel }), replace: true });
    },
    [navigate, history, path],
  );
  const bar = useRef<QueryBarHandle>(null);
  const finder = useRef<HTMLInputElement>(null);
  useKeys({ '/': () => finder.current?.select() });

  const applySuggestion = () => {
    if (!problem?.suggestion) return;
    setDraft(draft.slice(0, problem.position) + problem.suggestion + draft.slice(problem.position + problem.length));
    bar.current?.focus();
  };
  const message = problem && <QueryProblem error={problem} onFix={applySuggestion} />;
  const status = (
    <>
      <FilterChips />
      {!writing && message}
    </>
  );
  const list = { q: effective, valid, entry, solved, status };
  return (
    <div className="flex h-full min-h-0 flex-col">
      <div className="flex min-h-[40px] flex-none items-center gap-2 border-b border-line px-3 max-[560px]:flex-wrap max-[560px]:py-[5px]">
        <PanelToggle name="facets" open={panels.facets} onToggle={() => togglePanel('facets')} />
        <QueryBar
          handle={bar}
          draft={draft}
          onDraft={setDraft}
          onApply={setQuery}
          error={problem}
          problem={writing && message}
          onWriting={setWriting}
          known={known}
        />
        <FindField input={finder} find={search.find ?? ''} mode={mode} onFind={setFind} />
        <ViewsMenu q={q} sort={search.sort} cols={search.cols} />
        {listed && (
          <ColumnChooser cols={search.cols} onCols={(cols) => void navigate({ search: (old) => ({ ...old, cols }), replace: true })} />
        )}
        <AlertMe run={run.name} className="button" on="this query" preset={{ subject: 'count', q: effective, value: '0' }} />
        <button type="button" className="button" disabled={!valid} onClick={() => setReviewing(true)} title="Review a sample of the query">
          Review
        </button>
        <button type="button" className="button" disabled={!valid} onClick={() => setExporting(true)}>
          Export
        </button>
        {listed && <PanelToggle name="preview" open={panels.preview} onToggle={() => togglePanel('preview')} />}
      </div>
      <div className="flex min-h-0 flex-1">
        {panels.facets && <Facets run={run.id} filter={filter} snapshot={entry.snapshot} query={query} onQuery={setQuery} />}
        {listed ? (
          <ListPanel
            {...list}
            key={entry.snapshot}
            order={order}
            onOrder={(next) => void navigate({ search: (old) => ({ ...old, sort: printOrder(next), sel: undefined }) })}
            cols={search.cols}
            sel={search.sel ?? null}
            onSel={select}
            preview={panels.preview}
            onHidePreview={() => togglePanel('preview')}
            onReload={() => setReloads(reloads + 1)}
          />
        ) : (
          <FindPanel
            {...list}
            key={entry.snapshot}
            find={search.find ?? ''}
            mode={mode}
            onQuery={setQuery}
            query={query}
            onLeave={() => setFind('', 'text')}
          />
        )}
      </div>
      <ExportDialog q={effective} open={exporting} onClose={() => setExporting(false)} />
      <CreateQueueDialog q={effective} open={reviewing} onClose={() => setReviewing(false)} />
    </div>
  );
}
