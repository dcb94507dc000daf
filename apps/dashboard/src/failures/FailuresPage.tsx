import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type Failure, failuresNowQuery, failuresQuery } from '../data/insights.ts';
import { useNews } from '../data/news.ts';
import { formatCount, formatReward, formatShare, plural } from '../format/number.ts';
import { Loaded } from '../frame/Loaded.tsx';
import { NewsPill } from '../frame/NewsPill.tsx';
import { Stop } from '../frame/Stop.tsx';
import type { FailureList } from '@palestra/protocol';
import { useRun } from '../run/context.ts';
import { PlainText } from '../text/PlainText.tsx';
import { FailureClass } from './FailureClass.tsx';
import { Trend } from './Trend.tsx';

const keyOf = ({ fingerprint }: Failure): string => fingerprint;
/** Of an error and an example, on the page; the rollout has all of it. */
const MAX_CHARACTERS = 300;

/** Of the chosen steps; a failure that began before them says when. */
function stepsOf({ first_step: first, last_step: last, first_seen_step: seen }: Failure): string {
  if (first === null) return 'Without a step';
  if (seen !== null && seen < first) return `${first === last ? `Step ${first}` : `Steps ${first} to ${last}`}, first seen at step ${seen}`;
  return first === last ? `Only at step ${first}` : `First at step ${first}, last at step ${last}`;
}

function Cluster({ failure, list }: { failure: Failure; list: FailureList }) {
  const { org, run, filter } = useRun();
  const { example } = failure;
  const q = `failure:${failure.fingerprint}`;
  const hash = example.index === null ? {} : { hash: `m-${example.index}` };
  return (
    <li
      data-row
      className="grid grid-cols-[72px_minmax(0,1fr)_220px] gap-x-4 gap-y-1 border-b border-line px-4 py-3 max-[760px]:grid-cols-[56px_minmax(0,1fr)]"
    >
      <div className="num">
        <p className="text-[16px] strong">{formatCount(failure.count)}</p>
        <p className="label">{formatShare(failure.count, list.rollouts)}</p>
      </div>
      <div className="min-w-0">
        <p className="flex min-w-0 flex-wrap items-baseline gap-x-2">
          <FailureClass of={failure.class} />
          {failure.tool !== null && (
            <span className="mono strong">
              <PlainText text={failure.tool} />
            </span>
          )}
          {failure.error === null ? (
            <Stop stop={example.stop} />
          ) : (
            <span className="mono min-w-0 break-words">
              <PlainText text={failure.error.slice(0, MAX_CHARACTERS)} />
            </span>
          )}
        </p>
        {example.text !== null && example.text !== '' && example.text !== failure.error && (
          <p className="mt-1 truncate text-[12px] text-ink-3" title={example.text.slice(0, 2_000)}>
            “<PlainText text={example.text.slice(0, MAX_CHARACTERS)} />”
          </p>
        )}
        <p className="mt-1 flex flex-wrap gap-x-4 gap-y-1 text-[12px]">
          <Link to="/$org/runs/$run/rollouts" params={{ org, run: run.name }} search={{ ...filter, q }} className="link">
            All {plural(failure.count, 'rollout')}
          </Link>
          <Link to="/rollout/$id" params={{ id: example.id }} search={{ q }} {...hash} className="link">
            Newest example{example.step === null ? '' : `, step ${example.step}`}
          </Link>
          {failure.solved > 0 && <span className="text-ink-3">{formatCount(failure.solved)} still succeeded</span>}
          <span className="text-ink-3">Mean reward {formatReward(failure.mean_reward)}</span>
          {failure.other_runs.length > 0 && (
            <span className="text-ink-3">
              Also in{' '}
              {failure.other_runs.map(({ name, count }, at) => (
                <span key={name}>
                  {at > 0 && ', '}
                  <Link to="/$org/runs/$run/rollouts" params={{ org, run: name }} search={{ q }} className="link underline">
                    <PlainText text={name} />
                  </Link>{' '}
                  {count >= 1_000 ? '1 000 or more' : formatCount(count)}
                </span>
              ))}
            </span>
          )}
        </p>
      </div>
      <div className="max-[760px]:col-start-2">
        <Trend values={failure.trend} bins={list.bins} label="Rollouts with this failure by step" />
        <p className="label">{stepsOf(failure)}</p>
      </div>
    </li>
  );
}

/** What the counts are over, and whose failures they are. */
function Summary({ list }: { list: FailureList }) {
  const { classes, failed, solved, rollouts, kinds, pending, bins, failures } = list;
  const [first, last] = [bins[0]?.from, bins.at(-1)?.to];
  const steps = first === undefined ? '' : first === last ? ` of step ${first}` : ` of steps ${first} to ${last}`;
  return (
    <p className="min-w-0">
      <span className="strong">
        {formatCount(failed)} of {plural(rollouts, 'rollout')}
        {steps} had a failure
      </span>
      <span className="text-ink-2">
        {' '}
        by {plural(kinds, 'cause')}: {formatCount(classes.policy)} of the policy, {formatCount(classes.environment)} of the environment,{' '}
        {formatCount(classes.infrastructure)} of the infrastructure.
        {solved > 0 && ` ${formatCount(solved)} still succeeded.`}
        {kinds > failures.length && ` The list shows the ${formatCount(failures.length)} most frequent causes.`}
        {pending > 0 && ` ${plural(pending, 'rollout')} without a known cause yet are not counted.`}
      </span>
    </p>
  );
}

/** Failed rollouts by cause: whose failure, which tool, which error. Counts are exact and depend on stored rollouts only. */
export function FailuresPage() {
  const { run, filter } = useRun();
  const failures = useQuery(failuresQuery(run.id, filter));
  const shown = { rows: failures.data?.failures ?? [], version: failures.data?.version, whole: true, key: keyOf };
  const news = useNews(run.version, shown, failuresNowQuery(run.id, filter));
  return (
    <Loaded query={failures}>
      {(data) => (
        <>
          <div className="flex items-center gap-3 border-b border-line px-4 py-2">
            {data.failed === 0 ? (
              <p className="text-ink-2">
                No rollout failed in these steps: no tool result is an error, and every rollout ended normally.
                {data.pending > 0 && ` ${plural(data.pending, 'rollout')} without a known cause yet are not counted.`}
              </p>
            ) : (
              <Summary list={data} />
            )}
            <span className="flex-1" />
            <NewsPill news={news} noun="kinds of failure" onShow={() => void failures.refetch()} />
          </div>
          {data.failures.length > 0 && (
            <ul aria-label="Kinds of failure">
              {data.failures.map((failure) => (
                <Cluster key={failure.fingerprint} failure={failure} list={data} />
              ))}
            </ul>
          )}
        </>
      )}
    </Loaded>
  );
}
