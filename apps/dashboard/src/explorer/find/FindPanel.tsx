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
import { withTextClause, setBounds } from '../query/query-edit.ts';
import type { HistoryEntry } from '../../table/history-entry.ts';
import { StatusRow } from '../StatusRow.tsx';
import { PlainText } from '../../text/PlainText.tsx';

const LIST = 'hits';
/** Hits are in the order in which their rollouts were stored. */
const STORED_FIRST: ListOrder = { id: 'created_at', order: 'asc' };

interface Props {
  q: string;
  valid: boolean;
  entry: HistoryEntry;
  status: ReactNode;
  find: string;
  mode: FindMode;
  /** The query of the bar; a click on the curve adds a step. */
  query: Query;
  onQuery: (text: string) => void;
  onLeave: () => void;
}

/** Messages that contain a text, oldest rollouts first, and the number of hits at each step. */
export function FindPanel({ q, valid, entry, status, find, mode, query, onQuery, onLeave }: Props) {
  const { run } = useRun();
  const { saved } = entry;
  const found = useInfiniteQuery({ ...findQuery(run.id, q, find, mode, entry.snapshot), enabled: valid });
  const { data, error, hasNextPage, isFetching, fetchNextPage } = found;
  const first = data?.pages[0];
  const hits = useMemo(() => data?.pages.flatMap((page) => page.hits) ?? [], [data]);
  const scroller = useRef<HTMLDivElement>(null);
  const move = useRowFocus(scroller);
  useKeys({ j: () => move(1), k: () => move(-1), Escape: onLeave });
  const from = useMemo<FromList>(() => ({ q: withTextClause(q, find, mode), sort: printOrder(STORED_FIRST) }), [q, find, mode]);
  const ready = data !== undefined;
  useEffect(() => {
    if (ready && scroller.current) scroller.current.scrollTop = saved.get(LIST) ?? 0;
  }, [ready, saved]);

  const refused = error instanceof ApiError && error.code === 'invalid_query' ? error.message.replace(/^query\.\w+(\.\d+)?: /, '') : null;
  return (
    <section aria-label="Messages found" className="flex min-w-0 flex-1 flex-col">
      <StatusRow>
        {first && <Summary hits={hits.length} first={first} more={hasNextPage} progress={data?.pages.at(-1)?.progress} />}
        {status}
        {refused && <span className="truncate text-bad">▲ {refused}</span>}
        <span className="flex-1" />
        <button type="button" className="label link flex-none" onClick={onLeave}>
          Back to the list <kbd>Esc</kbd>
        </button>
      </StatusRow>
      {error && !refused ? (
        <ErrorState error={error} retry={() => void found.refetch()} />
      ) : !data ? (
        valid && !refused && <SkeletonRows />
      ) : (
        <div ref={scroller} className="min-h-0 flex-1 overflow-y-auto" onScroll={(event) => saved.set(LIST, event.currentTarget.scrollTop)}>
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
          {hits.length === 0 && !hasNextPage && <p className="p-4 text-ink-3">No messages of these rollouts contain this text.</p>}
          {hasNextPage && (
            <button type="button" className="button m-3" disabled={isFetching} onClick={() => void fetchNextPage()}>
              {isFetching ? 'Searching…' : hits.length === 0 ? 'Continue the search' : 'Show more'}
            </button>
          )}
        </div>
      )}
    </section>
  );
}

/** The number of hits, and what it does not include. */
function Summary(props: { hits: number; first: SearchPage; more: boolean; progress: SearchPage['progress'] }) {
  const { hits, first, more, progress } = props;
  const counted = first.steps?.reduce((sum, { hits: some }) => sum + some, 0);
  const total =
    counted === undefined ? `${formatCount(hits)}${more ? '+' : ''}` : `${formatCount(counted)}${first.steps_capped ? '+' : ''}`;
  const exact = counted === undefined ? hits : counted;
  return (
    <span className="flex flex-none items-center gap-2 tabular-nums">
      <span>
        <span className="strong">{total}</span> {exact === 1 ? 'message' : 'messages'}
      </span>
      {first.steps_capped && <span className="chip">Counting stopped</span>}
      {more && progress && (
        <span className="chip">
          {formatCount(progress.rollouts)} of {formatCount(progress.of)} rollouts searched
        </span>
      )}
      {first.pending && <span className="chip">New rollouts are not searchable yet</span>}
      {first.incomplete && <span className="chip">Incomplete</span>}
    </span>
  );
}

const kinds: Record<string, string> = {
  system_message: 'System',
  user_message: 'User',
  assistant_message: 'Assistant',
  reasoning: 'Reasoning',
  tool_call: 'Call',
  tool_result: 'Result',
};

/** One message with the text around the first match. */
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
          <span className="min-w-[72px] truncate text-ink-2">
            <PlainText text={hit.rollout_name ?? hit.rollout.slice(0, 8)} />
          </span>
          {hit.step !== null && <span className="flex-none">step {hit.step}</span>}
          <span className="flex-none tabular-nums">reward {formatReward(hit.reward)}</span>
          <span className="ml-auto min-w-[72px] truncate text-right">
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

/** The text around the first match. The text is untrusted and is never interpreted. */
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
