import { useQuery } from '@tanstack/react-query';
import type { QueryError } from '@palestra/query';
import type { ReactNode } from 'react';
import { rolloutTotalQuery } from '../data/explorer.ts';
import { formatCount, plural } from '../format/number.ts';
import { Pill } from '../frame/NewsPill.tsx';
import { useRun } from '../run/context.ts';
import type { RolloutPages } from './rollout-pages.ts';

/** The filter of the run as clauses that can be removed. */
export function FilterChips() {
  const { filter, setFilter } = useRun();
  const chips = [
    filter.steps !== undefined && { text: `step:${filter.steps}`, clear: () => setFilter({ steps: undefined }) },
    filter.env !== undefined && { text: `env:${filter.env}`, clear: () => setFilter({ env: undefined }) },
    filter.phase !== undefined && { text: `phase:${filter.phase}`, clear: () => setFilter({ phase: undefined }) },
  ].filter((chip) => chip !== false);
  if (chips.length === 0) return null;
  return (
    <span className="flex flex-none items-center gap-1" role="group" aria-label="Filter of the run">
      {chips.map(({ text, clear }) => (
        <span key={text} className="chip mono">
          {text}
          <button type="button" aria-label={`Remove ${text}`} className="hover:text-bad" onClick={clear}>
            ✕
          </button>
        </span>
      ))}
    </span>
  );
}

/** `214 of 9 088`; `10k+` if counting stopped; `60+` while a regex search continues. */
export function Count({ pages, byRegex }: { pages: RolloutPages; byRegex: boolean }) {
  const { run } = useRun();
  const { total, rows, complete } = pages;
  if (!total) return <span className="label">Counting…</span>;
  const matching = complete
    ? formatCount(rows.length)
    : byRegex
      ? `${formatCount(rows.length)}+`
      : `${formatCount(total.count)}${total.atLeast ? '+' : ''}`;
  return (
    <span
      className="flex-none tabular-nums"
      title={byRegex && !complete ? 'The regex search runs page by page. Scroll down to find more.' : undefined}
    >
      <span className="strong">{matching}</span> <span className="text-ink-3">of {plural(run.num_rollouts, 'rollout')}</span>
    </span>
  );
}

/**
 * The number of new rollouts since the list was read; a click reads the list again. If counting stops at 10 000, it is the number of new
 * rollouts in the run since `before`, and the pill says so.
 */
export function NewPill({ q, pages, before, onShow }: { q: string; pages: RolloutPages; before: number; onShow: () => void }) {
  const { run } = useRun();
  const counted = pages.total !== undefined && !pages.total.atLeast;
  const { data } = useQuery({ ...rolloutTotalQuery(run.id, q), enabled: counted });
  const fresh = counted ? (data?.total ?? 0) - pages.total!.count : run.num_rollouts - before;
  if (!pages.total || fresh <= 0) return null;
  return (
    <Pill
      title={counted ? 'Reload the list' : 'New rollouts in the run. Not all of them match the query. Click to reload the list.'}
      onShow={onShow}
    >
      {`${formatCount(fresh)}${counted && data?.total_is === 'at_least' ? '+' : ''} new${counted ? '' : ' in the run'}`}
    </Pill>
  );
}

/** The error of the query, with a button that applies the suggestion. */
export function QueryProblem({ error, onFix }: { error: QueryError; onFix: () => void }) {
  return (
    <span id="query-error" role="alert" className="flex min-w-0 items-center gap-2 text-bad">
      <span className="truncate" title={error.message}>
        ▲ {error.message}
      </span>
      {error.suggestion !== undefined && (
        <button type="button" className="chip hover:text-ink-1" onMouseDown={(event) => event.preventDefault()} onClick={onFix}>
          Use <code>{error.suggestion}</code>
        </button>
      )}
    </span>
  );
}

export function StatusRow({ children }: { children: ReactNode }) {
  return <div className="flex h-[30px] min-w-0 flex-none items-center gap-3 border-b border-line px-3">{children}</div>;
}
