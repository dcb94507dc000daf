import type { ReviewQueue } from '@palestra/protocol';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { errorInstead } from '../data/http.ts';
import { reviewQueuesQuery } from '../data/reviews.ts';
import { formatCount, formatReward, plural, UNKNOWN } from '../format/number.ts';
import { formatAbsolute } from '../format/time.ts';
import { Age } from '../frame/Age.tsx';
import { ListAndDetails } from '../table/ListAndDetails.tsx';
import { Crumb, TopBar } from '../frame/page.tsx';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { type Column, DataTable } from '../table/DataTable.tsx';
import { whyNoAgreement } from './AgreementLine.tsx';
import { ProgressBar } from './ProgressBar.tsx';
import { QueueDetails } from './QueueDetails.tsx';

const columns: Column<ReviewQueue>[] = [
  {
    id: 'name',
    head: 'Queue',
    track: 'minmax(104px,2fr)',
    phone: 'minmax(0,1fr)',
    title: ({ name }) => name,
    cell: ({ name }) => <span className="strong">{name}</span>,
  },
  {
    id: 'run',
    head: 'Run',
    track: 'minmax(80px,1.4fr)',
    title: ({ run }) => run ?? undefined,
    cell: ({ run }) => <span className="text-ink-2">{run ?? 'All runs'}</span>,
  },
  { id: 'mode', head: 'Answers', track: '64px', cell: ({ mode }) => (mode === 'pairs' ? 'Pairs' : 'Labels') },
  {
    id: 'complete',
    head: 'Complete',
    track: 'minmax(156px,1fr)',
    phone: '150px',
    cell: ({ complete, items, closed_at }) => (
      <span className="flex w-full items-center gap-2">
        <ProgressBar label="Complete items" part={complete} whole={items} />
        <span className="flex-none tabular-nums">
          {formatCount(complete)} of {formatCount(items)}
          {closed_at !== null && <span className="label"> closed</span>}
        </span>
      </span>
    ),
  },
  {
    id: 'alpha',
    head: 'Alpha',
    track: '60px',
    align: 'right',
    explain: "Krippendorff's alpha over the items that at least two reviewers have answered",
    title: ({ agreement }) => whyNoAgreement(agreement) ?? undefined,
    cell: ({ agreement }) => (agreement.alpha === null ? UNKNOWN : formatReward(agreement.alpha)),
  },
  { id: 'author', head: 'Author', track: 'minmax(56px,0.7fr)', cell: ({ author }) => author },
  {
    id: 'created',
    head: 'Created',
    track: '92px',
    align: 'right',
    title: ({ created_at }) => formatAbsolute(created_at),
    cell: ({ created_at }) => <Age iso={created_at} />,
  },
];

/** All review queues of the organisation, and the results of the selected one. */
export function ReviewsPage() {
  const { queue: chosen } = useSearch({ from: '/reviews' });
  const navigate = useNavigate({ from: '/reviews' });
  const queues = useQuery(reviewQueuesQuery);
  const error = errorInstead(queues);
  const selected = queues.data?.find(({ id }) => id === chosen);
  return (
    <>
      <TopBar title="Review" crumbs={<Crumb>Review</Crumb>}>
        {queues.data && <span className="label">{plural(queues.data.length, 'queue')}</span>}
      </TopBar>
      {error ? (
        <ErrorState error={error} retry={() => void queues.refetch()} />
      ) : !queues.data ? (
        <SkeletonRows />
      ) : (
        <ListAndDetails
          list={
            <DataTable
              label="Review queues, newest first"
              columns={columns}
              rows={queues.data}
              rowKey={({ id }) => id}
              current={chosen ?? null}
              onOpen={({ id }) => void navigate({ search: { queue: id }, replace: true })}
              minWidth={640}
              empty={<NoQueue />}
            />
          }
          details={
            selected && <QueueDetails key={selected.id} queue={selected} onDeleted={() => void navigate({ search: {}, replace: true })} />
          }
        />
      )}
    </>
  );
}

function NoQueue() {
  return (
    <div className="flex max-w-[560px] flex-col gap-2 p-4 text-ink-2">
      <p>No review queues yet. A queue is a sample of a query. Reviewers label its rollouts or compare them in pairs.</p>
      <p>
        Open the rollouts of{' '}
        <Link to="/" className="link underline">
          a run
        </Link>
        , enter a query and choose Review.
      </p>
    </div>
  );
}
