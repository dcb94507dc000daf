import { type Provenance, PROVENANCES, type RunSummary } from '@palestra/protocol';
import type { Kpi, Series } from '../data/run-queries.ts';
import { formatCount, formatMean, formatReward, formatShare, plural, UNKNOWN } from '../format/number.ts';
import { lensNames } from '../run/LensMenu.tsx';

/** The format of a figure: a reward or probability, a share of a whole, a count, or a mean of counts. */
type Kind = 'reward' | 'share' | 'count' | 'mean';

const shares = /^(success|truncated|tool_error|errors|zero_variance.*|solved_.*)$/;
const counts = /^(scored|effective|groups)$/;
const means = /^(turns|calls|tokens_.*)$/;
/** Canonical rewards. A whole number of a trainer may be a count, so it is not formatted as a reward. */
const rewards = /^(reward_.*|avg@n)$/;

function kindOf(key: string, value: number): Kind {
  if (shares.test(key)) return 'share';
  if (counts.test(key)) return 'count';
  if (means.test(key)) return 'mean';
  return Math.abs(value) < 10 ? 'reward' : 'mean';
}

/** A canonical figure or a trainer's: `.294`, `−3.00`, `3.6 %`, `3 520`, `5.53`. Rewards and probabilities have one format. */
export function formatFigure(key: string, value: number | null | undefined): string {
  if (typeof value !== 'number' || !Number.isFinite(value)) return UNKNOWN;
  const kind = kindOf(key, value);
  if (kind === 'share') return formatShare(value, 1);
  if (kind === 'count') return formatCount(value);
  if (kind === 'mean' || (Math.abs(value) >= 2 && !rewards.test(key))) return formatMean(value);
  return formatReward(value);
}

const AXIS_UNITS = [
  [1e9, 'G'],
  [1e6, 'M'],
  [1e3, 'k'],
] as const;

/** Shorter than `formatFigure`, for the labels of an axis. */
export function formatAxis(key: string, value: number): string {
  if (shares.test(key)) return `${Number((100 * value).toPrecision(3))} %`;
  const [unit, suffix] = AXIS_UNITS.find(([least]) => Math.abs(value) >= least) ?? [1, ''];
  const digits = String(Number((value / unit).toPrecision(3)));
  return digits.replace(/^(-?)0\./, '$1.').replace('-', '−') + suffix;
}

/** The 95 % interval of a figure: `±.020`, or both ends if the interval is asymmetric. */
export function formatInterval({ key, value, low, high }: Pick<Kpi, 'key' | 'value' | 'low' | 'high'>): string | null {
  if (value === null || low === null || high === null) return null;
  const [below, above] = [value - low, high - value];
  if (Math.abs(below - above) < 0.0005) return `±${formatFigure(key, above)}`;
  return `${formatFigure(key, low)}–${formatFigure(key, high)}`;
}

/** What the denominator of a figure counts; null for figures of trainers that state it only in their formula. */
export function unitOf(key: string): 'rollouts' | 'groups' | 'results' | null {
  if (key === 'tool_error') return 'results';
  if (/^(pass[@^]|avg@n|zero_variance|solved_|groups$)|pass_at_\d+$/.test(key)) return 'groups';
  return shares.test(key) || counts.test(key) || means.test(key) || /^reward_|^(reward|environment)\//.test(key) ? 'rollouts' : null;
}

/** `n 3 520 of 3 840 rollouts`. */
export function formatDenominator({ key, denominator, of }: Pick<Kpi, 'key' | 'denominator' | 'of'>): string {
  const whole = denominator === of ? '' : ` of ${formatCount(of)}`;
  const unit = unitOf(key);
  // `n 1 group`, `n 0 of 1 group`.
  const one = (whole === '' ? denominator : of) === 1;
  return `n ${formatCount(denominator)}${whole}${unit === null ? '' : ` ${one ? unit.slice(0, -1) : unit}`}`;
}

const denominatorWords = {
  effective: 'counts scored rollouts that were not interrupted',
  scored: 'also counts the partial sums of interrupted rollouts',
  all: 'counts all rollouts, null as 0',
} as const;

/** The data of a curve: a series of the API, or counts by step. */
export type Curve = Pick<Series, 'key' | 'formula' | 'step' | 'value' | 'denominator' | 'of' | 'provenance' | 'notes'> & {
  lens: Series['lens'] | null;
  den: Series['den'];
};

/** Lens, denominators and provenance of a curve, in words. */
export function notesOfSeries(series: Curve): string[] {
  const sum = (column: readonly number[]) => column.reduce((a, b) => a + b, 0);
  const weakest = PROVENANCES.find((one) => series.provenance.includes(one));
  return [
    series.lens === null
      ? 'A count, the same in every lens'
      : series.lens === 'canonical'
        ? `Lens: canonical, ${denominatorWords[series.den ?? 'effective']}`
        : `Lens: as ${lensNames[series.lens]}`,
    `${formatDenominator({ key: series.key, denominator: sum(series.denominator), of: sum(series.of) })} over ${plural(series.step.length, 'step')}`,
    ...remarksOf(series),
    ...(weakest ? [`Provenance: ${weakest === 'reported' ? 'as uploaded' : `${weakest}, the weakest of its inputs`}`] : []),
  ];
}

const MAX_REMARKS = 3;

/** The notes of the API about some steps, most frequent first, and the number of steps without a value. */
function remarksOf({ value, notes }: Curve): string[] {
  const counted = new Map<string, number>();
  for (const { note } of notes) counted.set(note, (counted.get(note) ?? 0) + 1);
  const remarks = [...counted].toSorted(([, a], [, b]) => b - a).slice(0, MAX_REMARKS);
  const absent = value.filter((one) => one === null).length;
  return [
    ...(absent > 0 ? [`${formatCount(absent)} of ${formatCount(value.length)} steps: not in the upload`] : []),
    ...remarks.map(([note, steps]) => `${formatCount(steps)} ${steps === 1 ? 'step' : 'steps'}: ${note}`),
  ];
}

export const definitionOf = (series: Curve) => ({ name: series.key, formula: series.formula, notes: notesOfSeries(series) });

/** The fields of an upload that a figure uses, with the names in the provenance of the summary. */
function fieldsOf(key: string): string[] {
  const fields = ['step'];
  if (unitOf(key) === 'groups') fields.push('group');
  if (/token/.test(key)) fields.push('tokens');
  else if (/turns/.test(key)) fields.push('turns');
  else if (/truncated/.test(key)) fields.push('stop');
  else if (!/tool_error|calls|num_rewards/.test(key)) fields.push('reward');
  return fields;
}

/** The weakest provenance of the inputs of a figure. Unknown fields are not inputs. */
export function provenanceOf(key: string, { provenance }: Pick<RunSummary, 'provenance'>): Exclude<Provenance, 'unknown'> {
  const used = fieldsOf(key).map((field) => provenance[field]);
  if (used.some((counted) => (counted?.inferred ?? 0) > 0)) return 'inferred';
  return used.some((counted) => (counted?.parsed ?? 0) > 0) ? 'parsed' : 'reported';
}
