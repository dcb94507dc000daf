import type { ReviewItem, ReviewQueueDetail } from '@palestra/protocol';
import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { useRef } from 'react';
import { reviewQueueQuery } from '../data/reviews.ts';
import { useKeys } from '../frame/keyboard.ts';
import { Crumb, Slash, TopBar } from '../frame/page.tsx';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { PlainText } from '../text/PlainText.tsx';
import { choicesOf } from './choices.ts';
import { EndOfReview } from './EndOfReview.tsx';
import { RubricPanel } from './RubricPanel.tsx';
import { TranscriptPane } from './TranscriptPane.tsx';
import { type Review, useReview } from './useReview.ts';

/** Answers the items of a queue one after the other. Every step has a key. */
export function ReviewPage() {
  const { queue: id } = useParams({ from: '/reviews/$queue' });
  const queue = useQuery(reviewQueueQuery(id));
  return (
    <>
      <TopBar
        title={queue.data?.name ?? 'Review'}
        crumbs={
          <>
            <Link to="/reviews" search={{ queue: id }} className="hover:text-ink-1">
              Review
            </Link>
            <Slash />
            <Crumb>{queue.data?.name ?? ''}</Crumb>
          </>
        }
      />
      {queue.data ? (
        <Reviewing key={id} queue={queue.data} />
      ) : queue.error ? (
        <ErrorState error={queue.error} retry={() => void queue.refetch()} />
      ) : (
        <SkeletonRows />
      )}
    </>
  );
}

function Reviewing({ queue }: { queue: ReviewQueueDetail }) {
  const review = useReview(queue);
  if (review.error) return <ErrorState error={review.error} retry={review.retry} />;
  if (review.item === undefined) return <SkeletonRows />;
  if (review.item === null) return <EndOfReview {...{ queue, review }} />;
  return <Item {...{ queue, review }} item={review.item} />;
}

function Item({ queue, review, item }: { queue: ReviewQueueDetail; review: Review; item: ReviewItem }) {
  const comment = useRef<HTMLTextAreaElement>(null);
  const choices = choicesOf(queue);
  useKeys({
    ...Object.fromEntries(choices.map(({ key, choice }) => [key, () => review.answer(choice)])),
    n: review.skip,
    u: review.back,
    c: () => comment.current?.focus(),
  });
  const pair = item.rollouts.length > 1;
  return (
    <div className="flex h-full min-h-0 max-[900px]:flex-col">
      <div
        className={`grid min-h-0 min-w-0 flex-1 ${pair ? 'grid-cols-2 max-[900px]:grid-cols-1 max-[900px]:grid-rows-2' : 'grid-cols-[minmax(0,1fr)]'}`}
      >
        {item.rollouts.map((rollout, at) => (
          <TranscriptPane key={rollout} id={rollout} name={pair ? ['Left', 'Right'][at]! : null} />
        ))}
      </div>
      <RubricPanel {...{ queue, review, item, choices, comment }} />
      <p role="status" className="sr-only">
        Item {item.position} of {review.items}. <PlainText text={review.notice ?? ''} />
      </p>
    </div>
  );
}
