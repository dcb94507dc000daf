import type { ComparedRuns, CompareMetric } from '@palestra/protocol';
import { formatCount, plural, UNKNOWN } from '../format/number.ts';
import { formatFigure } from '../overview/figures.ts';
import { Flips } from './Flips.tsx';
import type { ComparedRun } from './runs.ts';
import { formatDifference, formatP } from './signed.ts';
import { RunMark } from './Tables.tsx';

type Pair = ComparedRuns['pairs'][number];
type Metric = Pair['metrics'][number];

const labels: Record<CompareMetric, string> = {
  reward_mean: 'Mean reward',
  success: 'Success',
  turns: 'Turns',
  calls: 'Tool calls',
  tool_error: 'Tool errors',
  truncated: 'Truncated',
};
/** Whether a larger value is better; others are neither. */
const direction: Partial<Record<CompareMetric, 1 | -1>> = { reward_mean: 1, success: 1, tool_error: -1, truncated: -1 };

/** How a difference was made: paired, or why not. */
function methodOf({ method, first, other }: Metric, common: number): string {
  if (method === 'paired') return `Paired by ${plural(first.tasks, 'task')}`;
  if (method === 'rollouts') return `Unpaired, over ${formatCount(first.samples)} and ${formatCount(other.samples)} rollouts`;
  return `Unpaired: ${common === 0 ? 'no task' : plural(common, 'task')} in common of ${formatCount(first.tasks)} and ${formatCount(other.tasks)}`;
}

const intervalText = (key: string, interval: { low: number | null; high: number | null } | null): string | null =>
  interval === null || interval.low === null || interval.high === null
    ? null
    : `${formatDifference(key, interval.low)} to ${formatDifference(key, interval.high)}`;

const excludesZero = ({ low, high }: { low: number | null; high: number | null }): boolean =>
  low !== null && high !== null && (low > 0 || high < 0);

/** The difference with its interval around zero, which is the line in the middle. */
function IntervalBar({ metric: { metric, difference, low, high } }: { metric: Metric }) {
  if (low === null || high === null) return null;
  const most = Math.max(Math.abs(low), Math.abs(high)) || 1;
  const at = (value: number) => 50 + (48 * value) / most;
  const sign = Math.sign(difference) * (direction[metric] ?? 0);
  const colour = !excludesZero({ low, high }) || sign === 0 ? 'bg-ink-3' : sign > 0 ? 'bg-good' : 'bg-bad';
  return (
    <span className="relative block h-[14px] w-full min-w-[120px]" aria-hidden="true">
      <span className="absolute left-1/2 h-full w-px bg-line-strong" />
      <span className={`absolute top-[6px] h-[2px] ${colour}`} style={{ left: `${at(low)}%`, width: `${at(high) - at(low)}%` }} />
      <span
        className={`absolute top-[4px] h-[6px] w-[6px] -translate-x-1/2 rounded-full ${colour}`}
        style={{ left: `${at(difference)}%` }}
      />
    </span>
  );
}

function MetricRow({ one }: { one: Metric }) {
  const sure = excludesZero(one);
  return (
    <tr className="border-t border-line" data-difference={one.metric}>
      <th scope="row" className="py-[4px] text-left font-[450] text-ink-2">
        {labels[one.metric]}
      </th>
      <td className="num pl-4">{formatFigure(one.metric, one.first.mean)}</td>
      <td className="num pl-4">{formatFigure(one.metric, one.other.mean)}</td>
      <td className={`num pl-4 ${sure ? 'strong' : ''}`}>{formatDifference(one.metric, one.difference)}</td>
      <td className="w-[30%] pl-4">
        <IntervalBar metric={one} />
      </td>
      <td className="num pl-4 text-ink-2">{intervalText(one.metric, one) ?? 'No interval'}</td>
      <td className="num pl-4 text-ink-2">{one.p === null ? UNKNOWN : formatP(one.p)}</td>
    </tr>
  );
}

function MetricTable({ pair, first, other }: { pair: Pair; first: ComparedRun; other: ComparedRun }) {
  return (
    <div className="overflow-x-auto" tabIndex={0} role="region" aria-label={`Differences of ${other.letter} to ${first.letter}`}>
      <table className="w-full whitespace-nowrap">
        <thead>
          <tr className="label text-left">
            <th scope="col" className="py-1 font-[450]">
              Figure
            </th>
            <th scope="col" className="num pl-4 font-[450]">
              <RunMark run={first} />
            </th>
            <th scope="col" className="num pl-4 font-[450]">
              <RunMark run={other} />
            </th>
            <th scope="col" className="num pl-4 font-[450]">
              {other.letter} − {first.letter}
            </th>
            <th scope="col" className="pl-4 font-[450]">
              <span className="sr-only">Interval around zero</span>
            </th>
            <th scope="col" className="num pl-4 font-[450]">
              95 % interval
            </th>
            <th scope="col" className="num pl-4 font-[450]">
              p
            </th>
          </tr>
        </thead>
        <tbody>
          {pair.metrics.map((one) => (
            <MetricRow key={one.metric} one={one} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The difference in reward in words: how it was made, on how many tasks and rollouts, and what it can detect. */
function Headline({ pair, first, other }: { pair: Pair; first: ComparedRun; other: ComparedRun }) {
  const name = `${other.letter} − ${first.letter}`;
  const reward = pair.metrics.find(({ metric }) => metric === 'reward_mean');
  if (!reward)
    return (
      <p data-pair={other.letter}>
        <span className="strong">{name}</span>{' '}
        <span className="text-ink-2">One of the runs has no scored rollout in these steps and this phase.</span>
      </p>
    );
  const alone = reward.method === 'paired' ? intervalText('reward_mean', reward.unpaired) : null;
  const bootstrap = intervalText('reward_mean', reward.bootstrap);
  return (
    <div data-pair={other.letter}>
      <p className="flex flex-wrap items-baseline gap-x-2">
        <span className="strong">{name} mean reward</span>
        <span className="num strong text-[16px]">{formatDifference('reward_mean', reward.difference)}</span>
        <span>{intervalText('reward_mean', reward) === null ? 'no interval' : `95 % ${intervalText('reward_mean', reward)}`}</span>
        <span className="chip">{methodOf(reward, pair.common_tasks)}</span>
        {reward.low !== null && <span className="chip">{excludesZero(reward) ? 'Interval excludes zero' : 'Interval includes zero'}</span>}
        <span className="text-ink-3">
          {formatCount(reward.first.samples)} and {formatCount(reward.other.samples)} rollouts
        </span>
      </p>
      <p className="text-ink-2" data-power={other.letter}>
        {reward.power_words}
      </p>
      {(bootstrap || alone) && (
        <p className="label">
          {[bootstrap && `Bootstrap over tasks: ${bootstrap}.`, alone && `Without pairing: ${alone}.`].filter(Boolean).join(' ')}
        </p>
      )}
    </div>
  );
}

function Environments({ rows }: { rows: Pair['environments'] }) {
  return (
    <table className="mt-3 w-full whitespace-nowrap">
      <caption className="label whitespace-normal text-left">
        Mean reward by environment; p corrected for {rows.length} environments (Holm)
      </caption>
      <tbody>
        {rows.map((one) => (
          <tr key={one.environment} className="border-t border-line" data-environment={one.environment}>
            <th scope="row" className="py-[4px] text-left font-[450] text-ink-2">
              {one.environment ?? 'No environment'}
            </th>
            <td className="num pl-4 strong">{formatDifference('reward_mean', one.difference)}</td>
            <td className="num pl-4 text-ink-2 max-[560px]:pl-2">{intervalText('reward_mean', one) ?? 'No interval'}</td>
            <td className="num pl-4 text-ink-2 max-[560px]:hidden">p {one.p_holm === null ? UNKNOWN : formatP(one.p_holm)}</td>
            <td className="num pl-4 text-ink-3 max-[560px]:hidden">
              {one.method === 'paired' ? 'Paired by' : 'Unpaired,'} {plural(one.tasks, 'task')}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** What the comparison proves: the difference of every other run to the first, with tests, power and flipped tasks. */
export function Differences({ compared, runs }: { compared: ComparedRuns; runs: readonly ComparedRun[] }) {
  const first = runs[0]!;
  const out = compared.runs
    .map(({ left_out }, at) => (left_out === 0 ? null : `${runs[at]?.letter ?? ''} ${formatCount(left_out)}`))
    .filter(Boolean);
  return (
    <section aria-label="Differences" className="border-b border-line px-4 py-3">
      <h2 className="panel-title">
        Differences{' '}
        <span className="label">
          {compared.steps.words} {compared.phase ?? 'No phase'} · mean over tasks of {DENOMINATOR[compared.den]}
          {out.length > 0 && ` · left out: ${out.join(', ')}`}
          {compared.cut !== null && ` · only ${formatCount(compared.cut)} tasks of each run`}
        </span>
      </h2>
      <div className="flex flex-col gap-6">
        {compared.pairs.map((pair, at) => {
          const other = runs[at + 1];
          if (!other) return null;
          return (
            <div key={pair.run} className="grid grid-cols-[minmax(0,3fr)_minmax(0,2fr)] gap-x-8 gap-y-3 max-[1100px]:grid-cols-1">
              <div className="min-w-0">
                <Headline pair={pair} first={first} other={other} />
                {pair.metrics.length > 0 && (
                  <div className="mt-2">
                    <MetricTable pair={pair} first={first} other={other} />
                  </div>
                )}
                {pair.environments.length > 0 && <Environments rows={pair.environments} />}
              </div>
              {pair.solved && <Flips solved={pair.solved} first={first} other={other} steps={compared.steps} />}
            </div>
          );
        })}
      </div>
    </section>
  );
}

const DENOMINATOR: Record<ComparedRuns['den'], string> = {
  scored: 'scored rollouts',
  all: 'all rollouts, unscored ones as 0',
  effective: 'effective rollouts',
};
