import type { ReviewItem, ReviewQueueDetail } from '@palestra/protocol';
import type { RefObject } from 'react';
import { formatCount, plural } from '../format/number.ts';
import { Markdown } from '../text/Markdown.tsx';
import { PlainText } from '../text/PlainText.tsx';
import { type Choice, textOfChoice } from './choices.ts';
import { ProgressBar } from './ProgressBar.tsx';
import type { Review } from './useReview.ts';

interface Props {
  queue: ReviewQueueDetail;
  review: Review;
  item: ReviewItem;
  choices: readonly Choice[];
  comment: RefObject<HTMLTextAreaElement | null>;
}

/** Progress, choices with their keys, comment and criteria. */
export function RubricPanel({ queue, review, item, choices, comment }: Props) {
  return (
    <aside
      aria-label="Rubric"
      className="flex w-[320px] flex-none flex-col gap-3 overflow-y-auto border-l border-line bg-paper-1 p-4 max-[900px]:max-h-[46%] max-[900px]:w-full max-[900px]:gap-2 max-[900px]:border-l-0 max-[900px]:border-t max-[900px]:p-3 min-[1700px]:w-[400px]"
    >
      <div>
        <div className="mb-1 flex items-baseline justify-between gap-2">
          <span className="strong">
            Item {formatCount(item.position)} of {formatCount(review.items)}
          </span>
          <span className="label">{formatCount(review.complete)} complete</span>
        </div>
        <ProgressBar label="Complete items" part={review.complete} whole={review.items} />
      </div>
      <div
        role="group"
        aria-label={queue.mode === 'pairs' ? 'Which rollout is better?' : 'Label'}
        className="flex flex-col gap-1 max-[900px]:flex-row max-[900px]:flex-wrap"
      >
        {choices.map(({ choice, text, key, keyText }) => (
          <button
            key={choice}
            type="button"
            className="button h-[32px] min-w-0 justify-start gap-2 aria-pressed:border-accent aria-pressed:bg-accent-wash aria-pressed:text-ink-1"
            aria-pressed={item.answer?.choice === choice}
            aria-keyshortcuts={key}
            onClick={() => review.answer(choice)}
          >
            <kbd className="min-w-[18px] text-center">{keyText}</kbd>
            <span className="truncate">
              <PlainText text={text} />
            </span>
          </button>
        ))}
      </div>
      <label className="flex flex-col gap-1">
        <span className="label">
          Comment <kbd>c</kbd>
        </span>
        <textarea
          ref={comment}
          className="input h-[72px] resize-y py-1 max-[900px]:h-[44px]"
          placeholder="Optional. Press Esc to leave the field."
          maxLength={10_000}
          value={review.comment}
          onChange={(event) => review.setComment(event.target.value)}
          onKeyDown={(event) => event.key === 'Escape' && event.currentTarget.blur()}
        />
      </label>
      <div className="flex gap-2">
        <button type="button" className="button" aria-keyshortcuts="n" onClick={review.skip}>
          {item.answer ? 'Keep and continue' : 'Skip'} <kbd>n</kbd>
        </button>
        <button type="button" className="button" aria-keyshortcuts="u" disabled={item.previous === null} onClick={review.back}>
          Back <kbd>u</kbd>
        </button>
      </div>
      <p className="text-ink-2 empty:hidden">{review.notice}</p>
      {item.others.length > 0 && (
        <section aria-label="Answers of others">
          <h2 className="label mb-1">{plural(item.others.length, 'other answer')}</h2>
          <ul className="flex flex-col gap-1">
            {item.others.map((other) => (
              <li key={`${other.reviewer} ${other.answered_at}`}>
                <PlainText text={other.reviewer} />:{' '}
                <span className="strong">
                  <PlainText text={textOfChoice(queue, other.choice)} />
                </span>
                {other.comment && (
                  <span className="block whitespace-pre-wrap text-ink-2 [overflow-wrap:anywhere]">
                    <PlainText text={other.comment} />
                  </span>
                )}
              </li>
            ))}
          </ul>
        </section>
      )}
      {queue.criteria && (
        <section aria-label="Criteria" className="border-t border-line pt-3">
          <Markdown source={queue.criteria} />
        </section>
      )}
    </aside>
  );
}
