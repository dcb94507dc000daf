import { groupBy, metric } from '@palestra/metrics';
import type { Lens, RunSummary } from '@palestra/protocol';
import type { ReactNode } from 'react';
import type { Kpi } from '../data/run-queries.ts';
import { formatCount, formatShare, plural } from '../format/number.ts';
import { Popover } from '../frame/Popover.tsx';
import { WithProvenance } from '../frame/Provenance.tsx';
import { interruptedCount } from './stops.ts';
import { sizeNote } from './group-size.ts';
import { lensMetrics } from './lens-metrics.ts';
import { formatDenominator, formatFigure, formatInterval, provenanceOf } from './figures.ts';

/** Large figures, in this order. The others are small, in the order of the answer. */
const first = ['avg@n', 'reward_mean', 'pass@1', 'pass@n', 'zero_variance', 'turns', 'truncated', 'tool_error'];
const MAX_LARGE = 8;

/** pass@k for the group size that most groups have. */
const passOfMost = (kpis: readonly Kpi[], size: RunSummary['group_size']): Kpi | undefined =>
  size === null || size.n < 2 ? undefined : kpis.find(({ key }) => key === `pass@${size.n}`);

/** The figures in the charts of the trainer, else its first figures. */
function leadOfTrainer(lens: Lens, known: readonly Kpi[]): Kpi[] {
  const names = lensMetrics(lens, known).map((name) => name.split('{')[0]!);
  const rank = ({ key }: Kpi) => names.findIndex((name) => key.startsWith(name));
  return known
    .filter((kpi) => rank(kpi) >= 0)
    .toSorted((a, b) => rank(a) - rank(b))
    .slice(0, MAX_LARGE);
}

/** Splits the figures into large, small and absent ones. */
export function splitKpis({ lens, kpis, group_size }: Pick<RunSummary, 'lens' | 'kpis' | 'group_size'>): {
  lead: Kpi[];
  rest: Kpi[];
  absent: Kpi[];
} {
  const known = kpis.filter(({ value, note }) => value !== null || note !== 'not in the upload');
  const absent = kpis.filter((kpi) => !known.includes(kpi));
  const lead =
    lens === 'canonical'
      ? first.flatMap((key) => (key === 'pass@n' ? passOfMost(kpis, group_size) : kpis.find((kpi) => kpi.key === key)) ?? [])
      : leadOfTrainer(
          lens,
          known.filter(({ value }) => value !== null),
        );
  return { lead, rest: known.filter((kpi) => !lead.includes(kpi)), absent };
}

/** Short labels of canonical figures. Figures with a parameter (`pass@4`) and those of a trainer use their key. */
const short: Record<string, string> = {
  reward_min: 'Min',
  reward_max: 'Max',
  reward_std: 'Std',
  scored: 'Scored',
  effective: 'Effective',
  zero_variance_all_fail: 'Zero variance, none solved',
  zero_variance_all_pass: 'Zero variance, all solved',
  zero_variance_equal_other: 'Zero variance, all equal',
  solved_none: 'No rollout solved',
  solved_some: 'Some rollouts solved',
  solved_all: 'All rollouts solved',
};
const nameOf = ({ key, label }: Kpi, canonical: boolean) => {
  if (!canonical || /[@^]/.test(key)) return key;
  return key.startsWith('reward_p') ? key.slice('reward_'.length) : (short[key] ?? label);
};

const hint = (kpi: Kpi, lens: Lens) =>
  [
    kpi.key,
    metric(lens, kpi.key)?.formula,
    formatDenominator(kpi),
    plural(kpi.steps, 'step'),
    kpi.low !== null && kpi.high !== null ? `95 % interval ${formatFigure(kpi.key, kpi.low)} to ${formatFigure(kpi.key, kpi.high)}` : null,
    kpi.note,
  ]
    .filter(Boolean)
    .join('\n');

function Value({ kpi, summary }: { kpi: Kpi; summary: RunSummary }) {
  return (
    <WithProvenance provenance={kpi.value === null ? 'reported' : provenanceOf(kpi.key, summary)}>
      {formatFigure(kpi.key, kpi.value)}
    </WithProvenance>
  );
}

function Large({ kpi, summary }: { kpi: Kpi; summary: RunSummary }) {
  const interval = formatInterval(kpi);
  const even = interval?.startsWith('±');
  const size = summary.group_size;
  const isSized = size !== null && size.n > 1 && kpi.key === `pass@${size.n}`;
  const note = isSized ? `Groups of ${size.n}` : kpi.note === null || kpi.note.startsWith('interval:') ? null : kpi.note;
  return (
    <div
      className="-mb-px -mr-px min-w-0 border-b border-r border-line px-3 pb-[7px] pt-[7px]"
      title={hint(kpi, summary.lens)}
      data-kpi={kpi.key}
    >
      <dt className="label truncate">{nameOf(kpi, summary.lens === 'canonical')}</dt>
      <dd>
        <span className="block h-[26px] truncate text-[22px] font-[550] leading-[26px] tracking-[-0.02em] tabular-nums">
          <Value kpi={kpi} summary={summary} />
          {even && <span className="ml-[5px] text-[13px] font-[450] tracking-normal text-ink-3">{interval}</span>}
        </span>
        <span className="label block truncate">{formatDenominator(kpi)}</span>
        {interval && !even && <span className="label block truncate">95 % {interval}</span>}
        {note && (
          <span className="label block truncate" title={isSized ? sizeNote(size) : note}>
            {note}
          </span>
        )}
      </dd>
    </div>
  );
}

/** `usual`: the denominator of its row, which is not repeated. */
function Small({ kpi, summary, usual }: { kpi: Kpi; summary: RunSummary; usual: number }) {
  const interval = formatInterval(kpi);
  return (
    <div className="flex min-w-0 items-baseline gap-[5px]" title={hint(kpi, summary.lens)} data-kpi={kpi.key}>
      <dt className="label min-w-0 truncate">{nameOf(kpi, summary.lens === 'canonical')}</dt>
      <dd className="flex min-w-0 flex-none items-baseline gap-[5px] tabular-nums">
        <span className="text-ink-2">
          <Value kpi={kpi} summary={summary} />
          {interval && <span className="label ml-[3px]">{interval}</span>}
        </span>
        {kpi.denominator !== usual && (
          <span className="label" aria-label={formatDenominator(kpi)}>
            n {formatCount(kpi.denominator)}
          </span>
        )}
      </dd>
    </div>
  );
}

/** Plain counts, which are the same in every lens. */
function countsOf(summary: RunSummary): { key: string; name: string; text: string; title: string }[] {
  const { rollouts, scored, stops, finished, steps, messages, gaps, groups, incomplete_groups: waiting } = summary;
  const errors = interruptedCount(stops);
  const of = (part: number) => `${formatCount(part)} of ${formatCount(rollouts)} rollouts`;
  return [
    ...(steps.count > 0
      ? [
          {
            key: 'count:steps',
            name: 'Steps',
            text: steps.from === steps.to ? String(steps.from) : `${steps.from}–${steps.to}`,
            title: 'The steps of all figures on this page',
          },
        ]
      : []),
    { key: 'count:rollouts', name: 'Rollouts', text: formatCount(rollouts), title: `${formatCount(messages)} messages` },
    { key: 'count:unscored', name: 'Unscored', text: formatShare(rollouts - scored, rollouts), title: of(rollouts - scored) },
    {
      key: 'count:errors',
      name: 'Interrupted',
      text: formatShare(errors, rollouts),
      title: `${of(errors)}: env_error, infra_error, timeout, aborted, cancelled; not counted as reward 0`,
    },
    { key: 'count:finished', name: 'Finished', text: formatShare(finished, rollouts), title: of(finished) },
    {
      key: 'count:gaps',
      name: 'Missing messages',
      text: formatCount(gaps),
      title: 'Messages whose index is missing although later ones were received',
    },
    {
      key: 'count:incomplete',
      name: 'Incomplete groups',
      text: formatCount(waiting),
      title: `${formatCount(waiting)} of ${formatCount(groups)} groups expect more rollouts`,
    },
  ];
}

const rows = [
  ['Rewards', /^(reward_|success|scored|effective)/],
  ['Groups', /^(groups|pass|solved|zero_variance|avg@n)/],
  ['Behaviour', /./],
] as const;
const ORDER = [
  'reward_min',
  'reward_p10',
  'reward_p25',
  'reward_p50',
  'reward_p75',
  'reward_p90',
  'reward_max',
  'reward_std',
  'success',
  'scored',
  'effective',
  'groups',
];

/** Canonical figures in rows by subject and in a fixed order. Figures of a trainer are one row in the order of the trainer. */
function rowsOf({ lens }: Pick<RunSummary, 'lens'>, rest: readonly Kpi[]): { name: string; kpis: Kpi[] }[] {
  if (lens !== 'canonical') return [{ name: 'More', kpis: [...rest] }];
  const rank = ({ key }: Kpi) => (ORDER.includes(key) ? ORDER.indexOf(key) : ORDER.length);
  const rowOf = ({ key }: Kpi) => rows.findIndex(([, keys]) => keys.test(key));
  return rows.map(([name], i) => ({
    name,
    kpis: rest
      .filter((kpi) => rowOf(kpi) === i)
      .toSorted((a, b) => rank(a) - rank(b) || a.key.localeCompare(b.key, 'en', { numeric: true })),
  }));
}

/** What most figures of a row count. */
const usualOf = (kpis: readonly Kpi[]): number =>
  [...groupBy(kpis, ({ denominator }) => denominator)].toSorted(([, a], [, b]) => b.length - a.length)[0]![0];

/** Every figure of the filtered run with its interval, denominator and note. */
export function Kpis({ summary }: { summary: RunSummary }) {
  const { lead, rest, absent } = splitKpis(summary);
  return (
    <section aria-label="Figures" className="border-b border-line">
      <dl className="grid grid-cols-[repeat(auto-fit,minmax(128px,1fr))] overflow-hidden border-b border-line">
        {lead.map((kpi) => (
          <Large key={kpi.key} kpi={kpi} summary={summary} />
        ))}
      </dl>
      <div className="flex flex-col gap-[2px] px-3 py-[6px]">
        <Row name="Counts">
          {countsOf(summary).map(({ key, name, text, title }) => (
            <div key={key} className="flex items-baseline gap-[5px]" title={title} data-kpi={key}>
              <dt className="label">{name}</dt>
              <dd className="text-ink-2 tabular-nums">{text}</dd>
            </div>
          ))}
        </Row>
        <details>
          <summary className="label link w-fit cursor-pointer">All figures ({rest.length + absent.length} more)</summary>
          <div className="flex flex-col gap-[2px] pt-[4px]">
            {rowsOf(summary, rest).map(({ name, kpis }) => {
              if (kpis.length === 0) return null;
              const usual = usualOf(kpis);
              return (
                <Row key={name} name={name} note={`n ${formatCount(usual)}`}>
                  {kpis.map((kpi) => (
                    <Small key={kpi.key} kpi={kpi} summary={summary} usual={usual} />
                  ))}
                </Row>
              );
            })}
            {absent.length > 0 && (
              <Popover
                label={`${absent.length} not in the upload: show these figures`}
                className="label link self-start"
                button={`${absent.length} not in the upload`}
              >
                <Absent absent={absent} />
              </Popover>
            )}
          </div>
        </details>
      </div>
    </section>
  );
}

function Row({ name, note, children }: { name: string; note?: string; children: ReactNode }) {
  return (
    <div className="grid grid-cols-[112px_minmax(0,1fr)] items-baseline max-[560px]:grid-cols-1">
      <span className="label">
        {name}
        {note && <span className="ml-2 tabular-nums">{note}</span>}
      </span>
      <dl className="flex min-w-0 flex-wrap gap-x-[16px]">{children}</dl>
    </div>
  );
}

function Absent({ absent }: { absent: readonly Kpi[] }) {
  return (
    <>
      <h3 className="strong mb-1">Not in the upload</h3>
      <p className="label mb-2">The uploads lack the data for these figures. Palestra does not approximate figures of a trainer.</p>
      <ul className="mono text-ink-2">
        {absent.map(({ key }) => (
          <li key={key} className="truncate" title={key}>
            {key}
          </li>
        ))}
      </ul>
    </>
  );
}
