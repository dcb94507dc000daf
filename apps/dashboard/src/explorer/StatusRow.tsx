import { useQuery } from '@tanstack/react-query';
import type { QueryError } from '@palestra/query';
import type { ReactNode } from 'react';
import { rolloutTotalQuery } from '../data/explorer.ts';
import { formatCount, plural } from '../format/number.ts';
import { Pill } from '../frame/NewsPill.tsx';
import { useRun } from '../run/context.ts';
import type { RolloutPages } from './pages.ts';

/** The part of the run that all its pages share, as clauses that can be taken away. */
export function FilterChips() {
  const { filter, setFilter } = useRun();
  const chips = [
    filter.steps !== undefined && { text: `step:${filter.steps}`, clear: () => setFilter({ steps: undefined }) },
    filter.env !== undefined && { text: `env:${filter.env}`, clear: () => setFilter({ env: undefined }) },
    filter.phase !== undefined && { text: `phase:${filter.phase}`, clear: () => setFilter({ phase: undefined }) },
  ].filter((chip) => chip !== false);
  if (chips.length === 0) return null;
  return (
    <span className="flex flex-none items-center gap-1" role="group" aria-label="Scope of the run">
      {chips.map(({ text, clear }) => (
        <span key={text} className="chip mono">
          {text}
          <button type="button" aria-label={`Take ${text} away`} className="hover:text-bad" onClick={clear}>
            ✕
          </button>
        </span>
      ))}
    </span>
  );
}

/** `214 of 9 088`; `10k+` where counting stopped; `60+ found` while a regex is still looked for. */
export function Count({ pages, byRegex }: { pages: RolloutPages; byRegex: boolean }) {
  const { run } = useRun();
  const { total, rows, complete } = pages;
  if (!total) return <span className="label">counting</span>;
  const matching = complete
    ? formatCount(rows.length)
    : byRegex
      ? `${formatCount(rows.length)}+`
      : `${formatCount(total.count)}${total.atLeast ? '+' : ''}`;
  return (
    <span
      className="flex-none tabular-nums"
      title={byRegex && !complete ? 'A regex is looked for page by page: scroll on to find more.' : undefined}
    >
      <span className="strong">{matching}</span> <span className="text-ink-3">of {plural(run.num_rollouts, 'rollout')}</span>
    </span>
  );
}

/**
 * What has arrived since the list was read, which stays as it is until the reader asks for it. Where counting stops at 10 000 it is what
 * the run has more than `before`, and says so.
 */
export function NewPill({ q, pages, before, onShow }: { q: string; pages: RolloutPages; before: number; onShow: () => void }) {
  const { run } = useRun();
  const counted = pages.total !== undefined && !pages.total.atLeast;
  const { data } = useQuery({ ...rolloutTotalQuery(run.id, q), enabled: counted });
  const fresh = counted ? (data?.total ?? 0) - pages.total!.count : run.num_rollouts - before;
  if (!pages.total || fresh <= 0) return null;
  return (
    <Pill
      title={counted ? 'Read the list again' : 'So many more has the run; how many of them fit is not counted. Read the list again'}
      onShow={onShow}
    >
      {`${formatCount(fresh)}${counted && data?.total_is === 'at_least' ? '+' : ''} new${counted ? '' : ' in the run'}`}
    </Pill>
  );
}

/** What is wrong with the query, and one click that mends it. */
export function QueryProblem({ error, onMend }: { error: QueryError; onMend: () => void }) {
  return (
    <span id="query-error" role="alert" className="flex min-w-0 items-center gap-2 text-bad">
      <span className="truncate" title={error.message}>
        ▲ {error.message}
      </span>
      {error.suggestion !== undefined && (
        <button type="button" className="chip hover:text-ink-1" onMouseDown={(event) => event.preventDefault()} onClick={onMend}>
          Write <code>{error.suggestion}</code>
        </button>
      )}
    </span>
  );
}

export function StatusRow({ children }: { children: ReactNode }) {
  return <div className="flex h-[30px] min-w-0 flex-none items-center gap-3 border-b border-line px-3">{children}</div>;
}
