import type { ListedRun } from '@palestra/protocol';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { runPagesQuery, runsNowQuery, runsWithNews, uniqueRuns } from '../data/runs.ts';
import { formatCount, plural } from '../format/number.ts';
import { useReadings } from '../table/history-entry.ts';
import { useKeys } from '../frame/keyboard.ts';
import { useMedia } from '../frame/media.ts';
import { NewsPill } from '../frame/NewsPill.tsx';
import { Crumb, Slash, TopBar } from '../frame/page.tsx';
import { errorInstead } from '../data/http.ts';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { refOf, runPath } from '../run/address.ts';
import { Pending } from '../run/Pending.tsx';
import { DataTable } from '../table/DataTable.tsx';
import { nextPageOf } from '../table/next-page.ts';
import { runColumns, TWO_LINES } from './columns.tsx';
import { DemoNotice } from './DemoNotice.tsx';
import { EmptyRuns } from './EmptyRuns.tsx';

/** The maximum number of runs in a comparison. */
const MAX_COMPARED = 4;
const MIN_WIDTH = 1030;

/** A selected run: its reference in the address of a comparison, and its name. */
interface Chosen {
  ref: string;
  name: string;
}

/** All runs of the organisation, newest activity first. Runs can be selected for a comparison. */
export function RunsPage() {
  const { org } = useParams({ from: '/$org/runs' });
  const { q, tag } = useSearch({ from: '/$org/runs' });
  const navigate = useNavigate({ from: '/$org/runs' });
  const request = { search: q, tag };
  const { snapshot, reload } = useReadings(JSON.stringify(['runs', org, request]));
  const pages = useInfiniteQuery(runPagesQuery(request, snapshot));
  const search = useRef<HTMLInputElement>(null);
  // A link or Back changes the address without the field.
  useEffect(() => {
    if (search.current && search.current !== document.activeElement) search.current.value = q ?? '';
  }, [q]);
  const [selected, setSelected] = useState<readonly Chosen[]>([]);
  const [focused, setFocused] = useState<ListedRun | null>(null);
  const toggle = useCallback(
    (run: ListedRun) => {
      const chosen = { ref: refOf(run), name: run.name };
      setSelected((old) =>
        old.some(({ ref }) => ref === chosen.ref) ? old.filter(({ ref }) => ref !== chosen.ref) : [...old, chosen].slice(-MAX_COMPARED),
      );
    },
    [setSelected],
  );
  const wide = useMedia('(min-width: 1800px)');
  const read = useMemo(() => uniqueRuns(pages.data?.pages ?? []), [pages.data]);
  const total = pages.data?.pages.at(-1)?.total;
  const first = pages.isPlaceholderData ? undefined : pages.data?.pages[0];
  const now = useQuery(runsNowQuery(request, snapshot, first, pages.dataUpdatedAt)).data;
  const { runs, fresh } = useMemo(() => runsWithNews(read, total ?? 0, now), [read, total, now]);
  const columns = useMemo(
    () => runColumns({ has: (run) => selected.some(({ ref }) => ref === refOf(run)), toggle }, wide, runs),
    [selected, toggle, wide, runs],
  );
  const behind = runs.filter(({ pending }) => pending !== null);
  useKeys({ x: () => focused && toggle(focused), '/': () => search.current?.focus() });

  const open = (run: ListedRun, newTab: boolean) => {
    if (newTab) window.open(runPath(run.org, run.name), '_blank', 'noopener');
    else void navigate({ to: '/$org/runs/$run', params: { org: run.org, run: run.name }, search: {} });
  };
  const filtered = Boolean(q) || Boolean(tag);
  const error = errorInstead(pages);
  return (
    <>
      <TopBar
        title="Runs"
        crumbs={
          <>
            <span>{org}</span>
            <Slash />
            <Crumb>Runs</Crumb>
          </>
        }
      >
        {tag && (
          <button
            type="button"
            className="chip hover:text-ink-1"
            aria-label={`Remove the filter on tag ${tag}`}
            onClick={() => void navigate({ search: { q, tag: undefined } })}
          >
            Tag: {tag} <span aria-hidden="true">×</span>
          </button>
        )}
        <NewsPill news={{ fresh, changed: false }} noun="runs" onShow={reload} />
        {behind.length > 0 && <Pending text={`Figures of ${plural(behind.length, 'run')} are being updated`} />}
        {total !== undefined && <span className="label">{plural(total, 'run')}</span>}
        <input
          ref={search}
          type="search"
          className="input w-[220px]"
          placeholder="Find a run  /"
          aria-label="Find a run by name"
          defaultValue={q}
          onChange={(event) => void navigate({ search: { q: event.target.value || undefined, tag }, replace: true })}
        />
      </TopBar>
      {error ? (
        <ErrorState error={error} retry={() => void pages.refetch()} />
      ) : !pages.data ? (
        <SkeletonRows />
      ) : runs.length === 0 && !filtered ? (
        <EmptyRuns />
      ) : (
        <div className="flex h-full flex-col">
          <DemoNotice runs={runs} onRemoved={reload} />
          {selected.length > 0 && <SelectionBar chosen={selected} clear={() => setSelected([])} />}
          <div className="min-h-0 flex-1">
            <DataTable
              label="Runs, newest first"
              columns={columns}
              rows={runs}
              rowKey={(run) => run.id}
              {...(total !== undefined && { total })}
              onOpen={open}
              onFocusRow={setFocused}
              {...nextPageOf(pages)}
              {...(!wide && { rowHeight: TWO_LINES })}
              minWidth={MIN_WIDTH}
              empty={
                <p className="p-4 text-ink-3">
                  No runs have {[q && `“${q}” in their name`, tag && `the tag “${tag}”`].filter(Boolean).join(' and ')}.
                </p>
              }
            />
          </div>
        </div>
      )}
    </>
  );
}

/** The selected runs with actions. */
function SelectionBar({ chosen, clear }: { chosen: readonly Chosen[]; clear: () => void }) {
  const navigate = useNavigate();
  const few = chosen.length < 2;
  return (
    <div
      className="flex h-[40px] flex-none items-center gap-3 border-b border-line bg-accent-wash px-3"
      role="region"
      aria-label="Selected runs"
    >
      <span className="min-w-0 truncate">
        {formatCount(chosen.length)} selected: <span className="text-ink-2">{chosen.map(({ name }) => name).join(' · ')}</span>
      </span>
      <button
        type="button"
        className="button primary ml-auto"
        disabled={few}
        title={few ? 'Select a second run with its checkbox or the key x' : undefined}
        onClick={() => void navigate({ to: '/compare', search: { runs: chosen.map(({ ref }) => ref).join(',') } })}
      >
        Compare
      </button>
      <button type="button" className="button" onClick={clear}>
        Clear
      </button>
    </div>
  );
}
