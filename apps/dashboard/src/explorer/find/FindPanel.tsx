import type { SearchPage } from '@palestra/protocol';
import { useInfiniteQuery } from '@tanstack/react-query';
import type { Query } from '@palestra/query';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useEffect, useMemo, useRef } from 'react';
import { ApiError } from '../../data/http.ts';
import { type FromList, type ListOrder, printOrder } from '../../data/list-order.ts';
import { type FindMode, findQuery, type Hit } from '../../data/find.ts';
import { formatCount, formatReward } from '../../format/number.ts';
import { useKeys } from '../../frame/keyboard.ts';
import { useRowFocus } from '../../frame/rowFocus.ts';
import { ErrorState, SkeletonRows } from '../../frame/states.tsx';
import { useRun } from '../../run/context.ts';
import { HitCurve } from './HitCurve.tsx';
import { holding, setBounds } from '../query/query-edit.ts';
import type { Place } from '../../table/restore.ts';
import { StatusRow } from '../StatusRow.tsx';
import { PlainText } from '../../text/PlainText.tsx';

const LIST = 'hits';
/** Hits come as their rollouts were stored. */
const STORED_FIRST: ListOrder = { id: 'created_at', order: 'asc' };

interface Props {
  q: string;
  valid: boolean;
  place: Place;
  status: ReactNode;
  find: string;
  mode: FindMode;
  /** The query of the bar, which a click into the curve narrows. */
  query: Query;
  onQuery: (text: string) => void;
  onLeave: () => void;
}

/** The messages of the query's rollouts that hold a text, newest rollouts last as they were stored, and how many there are at each step. */
export function FindPanel({ q, valid, place, status, find, mode, query, onQuery, onLeave }: Props) {
  const { run } = useRun();
  const { left } = place;
  const found = useInfiniteQuery({ ...findQuery(run.id, q, find, mode, place.snapshot), enabled: valid });
  const { data, error, hasNextPage, isFetching, fetchNextPage } = found;
  const first = data?.pages[0];
  const hits = useMemo(() => data?.pages.flatMap((page) => page.hits) ?? [], [data]);
  const scroller = useRef<HTMLDivElement>(null);
  const move = useRowFocus(scroller);
  useKeys({ j: () => move(1), k: () => move(-1), Escape: onLeave });
  const from = useMemo<FromList>(() => ({ q: holding(q, find, mode), sort: printOrder(STORED_FIRST) }), [q, find, mode]);
  const ready = data !== undefined;
  useEffect(() => {
    if (ready && scroller.current) scroller.current.scrollTop = left.get(LIST) ?? 0;
  }, [ready, left]);

  const refused = error instanceof ApiError && error.code === 'invalid_query' ? error.message.replace(/^query\.\w+(\.\d+)?: /, '') : null;
  return (
    <section aria-label="Messages found" className="flex min-w-0 flex-1 flex-col">
      <StatusRow>
        {first && <Summary hits={hits.length} first={first} more={hasNextPage} />}
        {status}
        {refused && <span className="truncate text-bad">▲ {refused}</span>}
        <span className="flex-1" />
        <button type="button" className="label link flex-none" onClick={onLeave}>
          back to the list <kbd>Esc</kbd>
        </button>
      </StatusRow>
      {error && !refused ? (
        <ErrorState error={error} retry={() => void found.refetch()} />
      ) : !data ? (
        valid && !refused && <SkeletonRows />
      ) : (
        <div ref={scroller} className="min-h-0 flex-1 overflow-y-auto" onScroll={(event) => left.set(LIST, event.currentTarget.scrollTop)}>
          {first?.steps && first.steps.length > 0 && (
            <HitCurve
              steps={first.steps}
              capped={first.steps_capped}
              onStep={(step) => onQuery(setBounds(query, 'step', { from: step, to: step }))}
            />
          )}
          <ol aria-label="Hits">
            {hits.map((hit) => (
              <HitCard key={`${hit.rollout} ${hit.index}`} hit={hit} from={from} />
            ))}
          </ol>
          {hits.length === 0 && !hasNextPage && <p className="p-4 text-ink-3">No message of these rollouts holds that.</p>}
          {hasNextPage && (
            <button type="button" className="button m-3" disabled={isFetching} onClick={() => void fetchNextPage()}>
              {isFetching ? 'Looking …' : hits.length === 0 ? 'Look further' : 'Show more'}
            </button>
          )}
        </div>
      )}
    </section>
  );
}

/** How many there are, and what the figure leaves out. */
function Summary({ hits, first, more }: { hits: number; first: SearchPage; more: boolean }) {
  const counted = first.steps?.reduce((sum, { hits: some }) => sum + some, 0);
  const total =
    counted === undefined ? `${formatCount(hits)}${more ? '+' : ''}` : `${formatCount(counted)}${first.steps_capped ? '+' : ''}`;
  const exact = counted === undefined ? hits : counted;
  return (
    <span className="flex flex-none items-center gap-2 tabular-nums">
      <span>
        <span className="strong">{total}</span> {exact === 1 ? 'message' : 'messages'}
      </span>
      {first.steps_capped && <span className="chip">counting stopped at 10k</span>}
      {first.pending && <span className="chip">new rollouts are not searchable yet</span>}
      {first.incomplete && <span className="chip">incomplete</span>}
    </span>
  );
}

const kinds: Record<string, string> = {
  system_message: 'system',
  user_message: 'user',
  assistant_message: 'assistant',
  reasoning: 'reasoning',
  tool_call: 'call',
  tool_result: 'result',
};

/** One message: where it is, and what stands around the first match. */
function HitCard({ hit, from }: { hit: Hit; from: FromList }) {
  return (
    <li className="border-b border-line">
      <Link
        to="/rollout/$id"
        params={{ id: hit.rollout }}
        search={from}
        hash={`m-${hit.index}`}
        data-row
        className="block px-4 py-2 hover:bg-paper-1"
      >
        <span className="label flex items-baseline gap-3">
          <span className="truncate text-ink-2">
            <PlainText text={hit.rollout_name ?? hit.rollout.slice(0, 8)} />
          </span>
          {hit.step !== null && <span className="flex-none">step {hit.step}</span>}
          <span className="flex-none tabular-nums">reward {formatReward(hit.reward)}</span>
          <span className="ml-auto flex-none">
            {kinds[hit.type] ?? hit.type} <PlainText text={hit.name ?? ''} /> #{hit.index}
          </span>
        </span>
        <span className="mt-1 line-clamp-3 text-ink-2 [overflow-wrap:anywhere]">
          <Snippet hit={hit} />
        </span>
      </Link>
    </li>
  );
}

const CONTEXT = 90;

/** The text around the first match; it is untrusted, so it stays text. */
function Snippet({ hit }: { hit: Hit }) {
  const start = Math.max(0, (hit.matches[0]?.[0] ?? 0) - CONTEXT);
  const parts: ReactNode[] = [start > 0 || hit.offset > 0 ? '… ' : ''];
  let at = start;
  for (const [from = 0, to = 0] of hit.matches) {
    if (from < at || to <= from) continue;
    parts.push(<PlainText key={`before ${from}`} text={hit.snippet.slice(at, from)} />);
    parts.push(
      <mark key={from} className="rounded-[2px] bg-accent-wash text-ink-1 strong">
        <PlainText text={hit.snippet.slice(from, to)} />
      </mark>,
    );
    at = to;
  }
  parts.push(<PlainText key="rest" text={hit.snippet.slice(at)} />);
  return <bdi>{parts}</bdi>;
}
