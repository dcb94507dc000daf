import type { MoveCause, RunMove } from '@palestra/protocol';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type KeyboardEvent, useEffect, useId, useRef } from 'react';
import { moveQuery } from '../../data/run-queries.ts';
import { formatCount, formatReward, formatShare, plural } from '../../format/number.ts';
import { ErrorState, SkeletonRows } from '../../frame/states.tsx';
import { useRun } from '../../run/context.ts';
import { PlainText } from '../../text/PlainText.tsx';

/** What else changed at a step, most important first, each with a link to the rollouts that show it. */
export function MovePanel({ step, close }: { step: number; close: () => void }) {
  const { run, filter } = useRun();
  const query = useQuery(moveQuery(run.id, filter, step));
  const id = useId();
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), [step]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape') close();
  };
  const move = query.data?.moves[0];
  return (
    <section aria-labelledby={id} className="border-b border-line bg-paper-1 px-3 py-2" onKeyDown={onKeyDown}>
      <div className="flex min-h-[24px] items-center gap-3">
        <h2 id={id} ref={heading} tabIndex={-1} className="strong outline-none">
          Why did step {step} move?
        </h2>
        <button type="button" className="link ml-auto" onClick={close}>
          Close
        </button>
      </div>
      {query.error ? (
        <ErrorState error={query.error} retry={() => void query.refetch()} />
      ) : !query.data ? (
        <SkeletonRows count={3} />
      ) : move ? (
        <Explained move={move} />
      ) : (
        <p className="text-ink-2">Step {step} or the steps before it have no rewards.</p>
      )}
    </section>
  );
}

function Explained({ move }: { move: RunMove }) {
  const { step, baseline, now, before, difference, low, high, moved, causes, cut } = move;
  const steps = baseline.steps === 1 ? `step ${baseline.from}` : `steps ${baseline.from}–${baseline.to}`;
  return (
    <>
      <p className="text-ink-2 tabular-nums">
        Mean reward {formatReward(now.mean)} (n {formatCount(now.rollouts)}) after {formatReward(before.mean)} in {steps} (n{' '}
        {formatCount(before.rollouts)}): <span className="strong text-ink-1">{formatReward(difference, { signed: true })}</span>
        {low !== null && high !== null && (
          <span className="text-ink-3">
            {' '}
            (95 % {formatReward(low, { signed: true })} to {formatReward(high, { signed: true })})
          </span>
        )}
        {!moved &&
          (low !== null && high !== null && (low > 0 || high < 0)
            ? '. Among all steps of the run, one difference of this size can be chance.'
            : '. This is within the noise.')}
      </p>
      {causes.length === 0 ? (
        <p className="mt-1 text-ink-2">
          Nothing else changed by more than chance: no tool, arguments of calls, stop reason, version, task or length. The policy itself may
          have changed.
        </p>
      ) : (
        <ol
          aria-label={`What changed at step ${step}`}
          className="mt-2 grid max-w-[1200px] grid-cols-[14px_minmax(220px,1fr)_auto_auto] gap-x-4 max-[800px]:grid-cols-[14px_minmax(0,1fr)]"
        >
          {causes.map((cause) => (
            <Cause key={`${cause.kind} ${cause.text}`} cause={cause} move={move} />
          ))}
        </ol>
      )}
      {causes.length > 0 && (
        <p className="label mt-1">
          Each part is the change of a share times the difference in reward that goes with it. Parts overlap.
          {cut && ' Counted in the first 5 000 rollouts of each step.'}
          {causes.some(({ kind }) => kind === 'arguments') &&
            ' Arguments are checked in the first 200 rollouts of the step and of the steps before.'}
        </p>
      )}
    </>
  );
}

const MAX_BAR = 1;

function Cause({ cause, move }: { cause: MoveCause; move: RunMove }) {
  const { org, run, filter } = useRun();
  const { kind, text, detail, q, found, now, contribution, explained, likely, separable, example } = cause;
  const note = !separable
    ? 'affects all rollouts of the step, so only its timing is evidence'
    : ['turns', 'tokens'].includes(kind)
      ? 'length can follow from other causes'
      : null;
  const part = explained === null ? null : Math.max(0, Math.min(MAX_BAR, explained));
  const title = contribution
    ? `Explains ${formatReward(contribution.value, { signed: true })} of ${formatReward(move.difference, { signed: true })}, 95 % ${formatReward(contribution.low, { signed: true })} to ${formatReward(contribution.high, { signed: true })}`
    : undefined;
  return (
    <li className="col-span-full grid min-h-[28px] grid-cols-subgrid items-center border-t border-line py-[3px]">
      <span className={likely ? 'text-accent' : 'text-ink-3'} aria-hidden="true">
        {likely ? '●' : '○'}
      </span>
      <span className={likely ? 'strong' : 'text-ink-2'}>
        <span className="sr-only">{likely ? 'Likely: ' : 'Changed: '}</span>
        <PlainText text={text} />
        {note && <span className="label ml-2">{note}</span>}
        {detail !== null && (
          <span className="label ml-2">
            most often: <PlainText text={detail} />
          </span>
        )}
      </span>
      <span className="flex items-center gap-2 tabular-nums max-[800px]:col-start-2" title={title}>
        {part === null ? (
          <span className="label">Explains no reward</span>
        ) : (
          <>
            <span className="h-[8px] w-[70px] flex-none rounded-[2px] bg-paper-2" aria-hidden="true">
              <span
                className={`block h-full rounded-[2px] ${likely ? 'bg-ink-2' : 'bg-ink-3'}`}
                style={{ width: `${100 * part}%`, opacity: likely ? 1 : 0.6 }}
              />
            </span>
            <span className="text-ink-2">{formatReward(contribution?.value, { signed: true })}</span>
            <span className="label">{formatShare(explained, 1)}</span>
          </>
        )}
      </span>
      <span className="flex justify-end gap-3 whitespace-nowrap max-[800px]:col-start-2 max-[800px]:justify-start">
        {example !== null && example.index !== null && (
          <Link to="/rollout/$id" params={{ id: example.rollout }} search={{}} hash={`m-${example.index}`} className="link">
            {kind === 'arguments' ? 'Open an invalid call' : 'Open a failing call'}
          </Link>
        )}
        {q !== null && (
          <Link to="/$org/runs/$run/rollouts" params={{ org, run: run.name }} search={{ ...filter, q }} className="link" title={q}>
            {found === null
              ? now
                ? `Show ${plural(now.rollouts, 'rollout')}`
                : 'Show the rollouts'
              : `Show ${formatCount(found)} of them`}
          </Link>
        )}
      </span>
    </li>
  );
}
