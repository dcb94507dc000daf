import type { GroupView, RunTask } from '@palestra/protocol';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { formatCount, formatReward, UNKNOWN } from '../format/number.ts';
import { PlainText } from '../text/PlainText.tsx';
import { RunStep } from '../run/Step.tsx';
import { taskName } from '../format/task.ts';
import { signalOf } from './group-signal.ts';

function Figure({ label, title, children }: { label: string; title?: string; children: ReactNode }) {
  return (
    <span className="flex flex-none items-baseline gap-2 whitespace-nowrap" title={title}>
      <span className="label">{label}</span>
      <span className="strong tabular-nums">{children}</span>
    </span>
  );
}

/** Step and figures of the group. */
export function GroupHeader({ group }: { group: GroupView }) {
  const signal = signalOf(group.zero_variance, group.scored);
  return (
    <div className="flex min-h-[40px] flex-none flex-wrap items-center gap-x-[18px] border-b border-line px-4" data-figures>
      <Figure label="Step">
        <RunStep step={group.step} />
      </Figure>
      <Figure label="Received">
        {formatCount(group.received)} of {group.expected === null ? UNKNOWN : formatCount(group.expected)}
      </Figure>
      {group.received > group.scored && (
        <span className="chip text-infrastructure" title="Figures leave out interrupted rollouts and rollouts without a reward.">
          ✕ {formatCount(group.received - group.scored)} left out
        </span>
      )}
      {group.missing > 0 && (
        <span className="chip text-policy" title="Trainers drop failed rollouts. Figures use only the received rollouts.">
          ▲ {formatCount(group.missing)} not received
        </span>
      )}
      <Figure label="Mean" title={`Mean of the ${group.scored} scored rollouts`}>
        {formatReward(group.mean)} <span className="label">n {formatCount(group.scored)}</span>
      </Figure>
      <Figure label="Std" title="Standard deviation of the scored rollouts, with ddof 1">
        {formatReward(group.std)} <span className="label">ddof 1</span>
      </Figure>
      <Figure label="Solved">
        {formatCount(group.successes)} of {formatCount(group.scored)}
      </Figure>
      {group.pass.map(({ k, value }) => (
        <Figure key={k} label={`pass@${k}`} title={`1 − C(n−c, k) / C(n, k), n ${group.scored}, c ${group.successes}`}>
          {formatReward(value)}
        </Figure>
      ))}
      <span className={`chip ${signal.className}`}>{signal.text}</span>
    </div>
  );
}

const specOf = (spec: unknown): string =>
  spec === null || spec === undefined
    ? ''
    : typeof spec === 'string'
      ? spec
      : Object.entries(spec)
          .map(([key, value]) => `${key} ${typeof value === 'object' ? JSON.stringify(value) : String(value)}`)
          .join(' · ');

/** The task, its spec, and its solve rate at the other steps; each cell links to a group. */
export function TaskLine({
  group,
  spec,
  strip,
  org,
  run,
}: {
  group: GroupView;
  spec: unknown;
  strip: RunTask | undefined;
  org: string;
  run: string;
}) {
  const cells = (strip?.groups ?? []).toReversed().slice(-80);
  return (
    <div className="flex min-h-[34px] flex-none items-center gap-4 border-b border-line bg-paper-1 px-4 text-[12px]">
      <span className="strong flex-none text-[13px]">{taskName(group.task, 12)}</span>
      <span className="truncate text-ink-2">
        <PlainText text={specOf(spec).slice(0, 400)} />
      </span>
      <span className="flex-1" />
      <span className="label flex-none max-[760px]:hidden">{group.environment ?? UNKNOWN}</span>
      {cells.length > 1 && (
        <span className="flex flex-none items-center gap-2">
          <span className="label">Solved by step</span>
          <span className="flex gap-px">
            {cells.map((cell) => {
              const share = cell.scored === 0 ? null : cell.successes / cell.scored;
              const text = `Step ${cell.step ?? UNKNOWN}: ${share === null ? 'not scored' : `${cell.successes} of ${cell.scored} solved`}`;
              return (
                <Link
                  key={`${cell.key}:${cell.step}`}
                  to="/$org/runs/$run/groups/$group"
                  params={{ org, run, group: cell.key }}
                  search={(old: object) => ({ ...old, at: cell.step ?? undefined, lane: undefined }) as never}
                  preload={false}
                  title={text}
                  aria-label={text}
                  aria-current={cell.key === group.key ? 'true' : undefined}
                  className="relative block h-[14px] w-[7px] bg-paper-2 outline-offset-0 aria-[current=true]:outline-2 aria-[current=true]:outline-accent"
                >
                  <span
                    className={`absolute inset-x-0 bottom-0 ${share === null ? 'hatched' : 'bg-good'}`}
                    style={{ height: share === null ? '100%' : `${share * 100}%` }}
                  />
                </Link>
              );
            })}
          </span>
        </span>
      )}
    </div>
  );
}
