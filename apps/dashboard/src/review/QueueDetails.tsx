import type { ReviewQueue, ReviewQueueDetail } from '@palestra/protocol';
import { useMutation, useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { createExport } from '../data/exports.ts';
import { meQuery } from '../data/queries.ts';
import { closeReviewQueue, deleteReviewQueue, reviewQueueQuery } from '../data/reviews.ts';
import { formatCount, plural } from '../format/number.ts';
import { formatAbsolute } from '../format/time.ts';
import { ConfirmDialog } from '../frame/ConfirmDialog.tsx';
import { Details } from '../table/ListAndDetails.tsx';
import { Menu, MenuItem } from '../frame/Menu.tsx';
import { Markdown } from '../text/Markdown.tsx';
import { PlainText } from '../text/PlainText.tsx';
import { AgreementLine } from './AgreementLine.tsx';
import { choicesOf } from './choices.ts';
import { ProgressBar } from './ProgressBar.tsx';

/** Progress, agreement and results of a queue. */
export function QueueDetails({ queue: row, onDeleted }: { queue: ReviewQueue; onDeleted: () => void }) {
  const detail = useQuery(reviewQueueQuery(row.id)).data;
  const queue = detail ?? row;
  const me = useQuery(meQuery).data;
  return (
    <Details label="Selected queue">
      <div className="flex flex-col gap-2">
        <h2 className="text-[15px] leading-[20px] strong [overflow-wrap:anywhere]">{queue.name}</h2>
        <Actions queue={queue} onDeleted={onDeleted} />
      </div>
      <div className="flex flex-col gap-2">
        <p>
          {formatCount(queue.complete)} of {plural(queue.items, 'item')} complete
          {queue.closed_at !== null && <span title={formatAbsolute(queue.closed_at)}> · closed</span>}
          <span className="label">
            {' '}
            {plural(queue.overlap, 'answer')} per item · {plural(queue.answers, 'answer')} so far
          </span>
        </p>
        <ProgressBar label="Complete items" part={queue.complete} whole={queue.items} />
        {queue.overlap > 1 && <AgreementLine agreement={queue.agreement} />}
      </div>
      <Answers queue={queue} />
      {detail && detail.progress.length > 0 && <Reviewers progress={detail.progress} />}
      <section aria-label="Sample">
        <h3 className="label mb-1">Sample</h3>
        <pre className="code-block whitespace-pre-wrap">{queue.query || 'All rollouts'}</pre>
        <p className="mt-1 text-ink-2">
          {queue.run !== null && me ? (
            <Link
              to="/$org/runs/$run/rollouts"
              params={{ org: me.org.name, run: queue.run }}
              search={{ q: queue.query || undefined }}
              className="link underline"
            >
              {queue.run}
            </Link>
          ) : (
            (queue.run ?? 'All runs')
          )}
          {', '}seed {queue.seed}, {queue.mode === 'pairs' ? 'one pair of each group' : 'one rollout per item'}
        </p>
        <p className="text-ink-2">
          Reviewers: {queue.reviewers.length === 0 ? 'all members' : queue.reviewers.map(({ name }) => name).join(', ')}
        </p>
      </section>
      {queue.criteria && (
        <section aria-label="Criteria">
          <h3 className="label mb-1">Criteria</h3>
          <Markdown source={queue.criteria} />
        </section>
      )}
    </Details>
  );
}

function Answers({ queue }: { queue: ReviewQueue }) {
  const verdicts =
    queue.mode === 'pairs'
      ? 'verdict:chosen,rejected,tied'
      : `verdict:${/^\w+$/.test(queue.labels[0]!) ? queue.labels[0]! : JSON.stringify(queue.labels[0])}`;
  return (
    <section aria-label="Answers">
      <h3 className="label mb-1">Answers</h3>
      <dl className="grid grid-cols-[minmax(70px,auto)_minmax(0,1fr)_auto] items-center gap-x-3 gap-y-1">
        {choicesOf(queue).map(({ choice, text }) => (
          <div key={choice} className="contents">
            <dt className="truncate">
              <PlainText text={text} />
            </dt>
            <dd className="h-[8px] rounded-[2px] bg-paper-2" aria-hidden="true">
              <div
                className="h-full rounded-[2px] bg-ink-3"
                style={{ width: `${queue.answers === 0 ? 0 : (100 * (queue.choices[choice] ?? 0)) / queue.answers}%` }}
              />
            </dd>
            <dd className="num text-right">{formatCount(queue.choices[choice] ?? 0)}</dd>
          </div>
        ))}
      </dl>
      <p className="label mt-1">
        Annotations of complete items: <code>{verdicts}</code>
      </p>
    </section>
  );
}

function Reviewers({ progress }: Pick<ReviewQueueDetail, 'progress'>) {
  return (
    <section aria-label="Reviewers">
      <h3 className="label mb-1">Reviewers</h3>
      <ul>
        {progress.map(({ reviewer, answered, skipped, last_at }) => (
          <li key={`${reviewer} ${last_at}`} className="flex justify-between gap-3 border-t border-line py-1 first:border-t-0">
            <span className="truncate">
              <PlainText text={reviewer} />
            </span>
            <span className="flex-none tabular-nums" title={formatAbsolute(last_at)}>
              {plural(answered, 'answer')}
              {skipped > 0 && <span className="label"> · {formatCount(skipped)} skipped</span>}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Actions({ queue, onDeleted }: { queue: ReviewQueue; onDeleted: () => void }) {
  const [asking, setAsking] = useState<'close' | 'delete' | null>(null);
  const navigate = useNavigate();
  const write = useMutation({
    mutationFn: createExport,
    onSuccess: ({ id }) => void navigate({ to: '/exports', search: { job: id } }),
  });
  const formats = queue.mode === 'pairs' ? (['preference', 'preference-parquet'] as const) : (['labels', 'labels-parquet'] as const);
  return (
    <>
      <div className="flex flex-wrap gap-2">
        {queue.can_review && queue.complete < queue.items && (
          <Link to="/reviews/$queue" params={{ queue: queue.id }} className="button primary">
            Start review
          </Link>
        )}
        <Menu label="Results" button="Export" align="start">
          {formats.map((format) => (
            <MenuItem key={format} onSelect={() => write.mutate({ queue: queue.id, format })}>
              {queue.mode === 'pairs' ? 'Preference pairs' : 'Labels'} as {format.endsWith('parquet') ? 'Parquet' : 'JSON lines'}
            </MenuItem>
          ))}
        </Menu>
        {queue.can_manage && queue.closed_at === null && (
          <button type="button" className="button" onClick={() => setAsking('close')}>
            Close
          </button>
        )}
        {queue.can_manage && (
          <button type="button" className="button text-bad" onClick={() => setAsking('delete')}>
            Delete
          </button>
        )}
      </div>
      <p role="alert" className="text-bad empty:hidden">
        {write.error?.message}
      </p>
      {asking === 'close' && (
        <ConfirmDialog
          title={`Close ${queue.name}?`}
          action="Close queue"
          onConfirm={() => closeReviewQueue(queue.id)}
          onClose={() => setAsking(null)}
        >
          <p>No more answers are possible. The answers of incomplete items become annotations too. You cannot reopen a closed queue.</p>
        </ConfirmDialog>
      )}
      {asking === 'delete' && (
        <ConfirmDialog
          title={`Delete ${queue.name}?`}
          action="Delete queue"
          onConfirm={async () => {
            await deleteReviewQueue(queue.id);
            onDeleted();
          }}
          onClose={() => setAsking(null)}
        >
          <p>This deletes {plural(queue.answers, 'answer')} and their annotations. The rollouts are kept.</p>
        </ConfirmDialog>
      )}
    </>
  );
}
