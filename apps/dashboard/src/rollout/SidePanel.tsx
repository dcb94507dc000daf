import { Link } from '@tanstack/react-router';
import type { JsonValue, RolloutRow, RolloutView } from '@palestra/protocol';
import { type ReactNode, useMemo } from 'react';
import { formatReward, UNKNOWN } from '../format/number.ts';
import { formatDuration } from '../format/time.ts';
import { RewardDot } from '../frame/Reward.tsx';
import { PlainText } from '../text/PlainText.tsx';
import { rewardOf, type TranscriptItem } from './transcript.ts';

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="border-b border-line px-3 py-[10px]">
      <h2 className="mb-1 strong">{title}</h2>
      {children}
    </section>
  );
}

const display = (value: JsonValue): string => (typeof value === 'string' ? value : JSON.stringify(value));

function Facts({ facts }: { facts: [string, ReactNode][] }) {
  return (
    <dl className="grid grid-cols-[104px_minmax(0,1fr)] gap-x-[10px] gap-y-[3px] text-[12px]">
      {facts.map(([name, value]) => (
        <div key={name} className="contents">
          <dt className="truncate text-ink-3" title={name}>
            {name}
          </dt>
          <dd className="break-words">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** What the trainer sent, key by key; nothing for an empty or absent object. */
function ObjectSection({ title, object }: { title: string; object: JsonValue }) {
  if (object === null || typeof object !== 'object' || Array.isArray(object) || Object.keys(object).length === 0) return null;
  return (
    <Section title={title}>
      <Facts facts={Object.entries(object).map(([name, value]) => [name, <PlainText key={name} text={display(value).slice(0, 500)} />])} />
    </Section>
  );
}

/** Reward after each scored row, as steps; the last point is the total. */
function Cumulative({ rewards }: { rewards: number[] }) {
  const totals = rewards.reduce<number[]>((sums, reward) => [...sums, (sums.at(-1) ?? 0) + reward], [0]);
  const [low, high] = [Math.min(...totals, 0), Math.max(...totals, 0)];
  const x = (i: number) => (264 * i) / totals.length;
  const y = (value: number) => 30 - (28 * (value - low)) / (high - low || 1);
  const path = totals.map((value, i) => (i === 0 ? `M0 ${y(value)}` : `H${x(i)}V${y(value)}`)).join('') + 'H264';
  return (
    <svg
      viewBox="0 0 264 32"
      className="mt-2 w-full"
      role="img"
      aria-label={`Reward after each scored step, ending at ${formatReward(totals.at(-1))}`}
    >
      <path d={`M0 ${y(0)}H264`} stroke="var(--line)" />
      <path d={path} fill="none" stroke="var(--good)" strokeWidth="1.5" />
    </svg>
  );
}

interface SidePanelProps {
  rollout: RolloutView;
  items: TranscriptItem[];
  /** Rollouts of the run, for the samples of the same task. */
  rows: RolloutRow[];
  solved: (reward: number) => boolean;
  select: (row: number) => void;
}

export function SidePanel({ rollout, items, rows, solved, select }: SidePanelProps) {
  const scored = useMemo(
    () => items.map((item, row) => ({ item, row, reward: rewardOf(item) })).filter((entry) => entry.reward !== null),
    [items],
  );
  const samples = rows.filter(
    (row) =>
      rollout.task_index !== null &&
      row.task_index === rollout.task_index &&
      row.split === rollout.split &&
      row.environment === rollout.environment &&
      row.step === rollout.step,
  );
  const facts: [string, ReactNode][] = [
    ['environment', rollout.environment ?? UNKNOWN],
    ['split', rollout.split ?? UNKNOWN],
    ['task', rollout.task_index ?? UNKNOWN],
    ...(rollout.variant ? ([['variant', rollout.variant]] as [string, ReactNode][]) : []),
    ['state', rollout.state],
    ['span', formatDuration(Date.parse(rollout.updated_at) - Date.parse(rollout.created_at))],
  ];
  return (
    <aside aria-label="Outcome" className="min-h-0 overflow-auto border-l border-line max-[1120px]:hidden">
      <Section title="Outcome">
        {scored.length === 0 ? (
          <p className="text-[12px] text-ink-3">No message carries a reward.</p>
        ) : (
          <>
            <ul className="max-h-[180px] overflow-auto text-[12px]">
              {scored.map(({ item, row, reward }) => (
                <li key={row}>
                  <button
                    type="button"
                    onClick={() => select(row)}
                    className="flex h-[22px] w-full items-center justify-between gap-2 hover:bg-paper-2"
                  >
                    <span className="truncate text-ink-2">
                      {item.kind === 'call' ? (item.call?.name ?? 'result') : 'message'} <span className="text-ink-3">#{item.anchor}</span>
                    </span>
                    <span className="num">{formatReward(reward, { signed: true })}</span>
                  </button>
                </li>
              ))}
              <li className="flex h-[22px] items-center justify-between border-t border-line strong">
                <span>total</span>
                <span className="num">{formatReward(rollout.reward)}</span>
              </li>
            </ul>
            <Cumulative rewards={scored.map((entry) => entry.reward!)} />
          </>
        )}
      </Section>
      {samples.length > 1 && (
        <Section title="Samples of this task">
          <ul className="-mx-3 text-[12px]">
            {samples.toReversed().map((row, i) => (
              <li key={row.id}>
                <Link
                  to="/rollout/$id"
                  params={{ id: row.id }}
                  preload={false}
                  replace
                  aria-current={row.id === rollout.id ? 'true' : undefined}
                  className={`grid h-[26px] grid-cols-[28px_12px_44px_minmax(0,1fr)] items-center gap-2 px-3 hover:bg-paper-2 ${row.id === rollout.id ? 'bg-paper-2 strong' : ''}`}
                >
                  <span className="text-ink-3">#{i}</span>
                  <RewardDot reward={row.reward} solved={solved} />
                  <span className="num">{formatReward(row.reward)}</span>
                  <span className="truncate text-ink-3">
                    {row.turns} turns, {row.stop ?? row.state}
                  </span>
                </Link>
              </li>
            ))}
          </ul>
        </Section>
      )}
      <Section title="Rollout">
        <Facts facts={facts} />
      </Section>
      <ObjectSection title="Task" object={rollout.task_spec} />
      <ObjectSection title="Metadata" object={rollout.metadata} />
      <ObjectSection title="Run info" object={rollout.run_info} />
      <ObjectSection title="Rollout info" object={rollout.rollout_info} />
      <p className="label break-all px-3 py-[10px] font-mono">{rollout.id}</p>
    </aside>
  );
}
