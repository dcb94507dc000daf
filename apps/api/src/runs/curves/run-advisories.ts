import type { Advisory } from '@palestra/protocol';
import type { RecentRollouts } from './run-summary.sql.ts';
import type { StepRow } from '../../store/figures/step-figures.sql.ts';
import { readFigure } from '../../store/figures/step-rollup.ts';

/** What the rules of advisories read (docs/reference/metrics.md#advisories). */
export interface AdvisoryInput {
  /** Rows of one phase, by step. */
  rows: readonly StepRow[];
  /** Merged figures by canonical key. */
  value(key: string): number | null;
  /** Confidence of the step inference; null when the uploads contain the steps. */
  confidence: number | null;
  /** Rollouts of the last 30 minutes. */
  recent: RecentRollouts;
  /** First arrivals of the last steps, ascending, in milliseconds since the epoch. */
  stepTimes: readonly number[];
  /** Time of the newest event. */
  lastAt: number | null;
  /** Marked as finished: its silence is no stall. */
  finished: boolean;
  now: number;
}

const HALF_HOUR_MS = 1_800_000;
const percent = (value: number) => `${Math.round(value * 1000) / 10} %`;

export function advisoriesOf(input: AdvisoryInput): Advisory[] {
  return [
    ...rates(input),
    ...counts(input),
    aborted(input),
    ambiguousTasks(input),
    silence(input),
    inference(input),
    rewardWithoutSuccess(input),
  ].filter((one) => one !== null);
}

function above(
  rule: string,
  level: Advisory['level'],
  value: number | null,
  threshold: number,
  what: string,
  q: string | null,
): Advisory | null {
  return value !== null && value > threshold ? { rule, level, text: `${percent(value)} ${what}`, value, threshold, q } : null;
}

function rates({ value }: AdvisoryInput): (Advisory | null)[] {
  const kinds = [
    ['all solved', value('zero_variance_all_pass')],
    ['none solved', value('zero_variance_all_fail')],
    ['otherwise equal', value('zero_variance_equal_other')],
  ] as const;
  const split = kinds.flatMap(([kind, share]) => (share ? [`${kind} ${percent(share)}`] : [])).join(', ');
  return [
    above(
      'zero_variance',
      'hint',
      value('zero_variance'),
      0.5,
      `of the groups have zero variance${split && ` (${split})`}: the policy learns nothing from them.`,
      'group.n:>=2 group.std:0',
    ),
    above('truncated', 'hint', value('truncated'), 0.25, 'of the rollouts were truncated.', 'is:truncated'),
    above('tool_error', 'warning', value('tool_error'), 0.05, 'of the tool results are errors.', 'has:error'),
  ];
}

function counts({ rows }: AdvisoryInput): (Advisory | null)[] {
  const sum = (of: (row: StepRow) => number) => rows.reduce((total, row) => total + of(row), 0);
  const [rollouts, gaps, groups] = [sum((r) => r.rollouts), sum((r) => r.figures.gaps), sum((r) => r.figures.groups)];
  const share = (part: number, whole: number) => (whole === 0 ? null : part / whole);
  const missing: Advisory = {
    rule: 'gaps',
    level: 'warning',
    text:
      gaps === 1
        ? 'One message is missing, although later ones were received.'
        : `${gaps} messages are missing, although later ones were received.`,
    value: gaps,
    threshold: 0,
    q: 'has:gap',
  };
  return [
    gaps > 0 ? missing : null,
    above(
      'reward_mismatch',
      'warning',
      share(
        sum((r) => r.figures.mismatches),
        rollouts,
      ),
      0.01,
      'of the rollouts report a reward that is not the sum of their message rewards.',
      'has:mismatch',
    ),
    above(
      'incomplete_groups',
      'hint',
      share(
        sum((r) => r.figures.incomplete_groups),
        groups,
      ),
      0.05,
      'of the groups still wait for rollouts.',
      'group.complete:false',
    ),
  ];
}

function aborted({ recent }: AdvisoryInput): Advisory | null {
  if (recent.rollouts < 100) return null;
  return above(
    'aborted',
    'warning',
    recent.aborted / recent.rollouts,
    0.05,
    'of the rollouts of the last 30 minutes were aborted.',
    'stop:aborted,cancelled received:30m',
  );
}

function ambiguousTasks({ recent: { ambiguous } }: AdvisoryInput): Advisory | null {
  if (ambiguous === 0) return null;
  const rollouts = ambiguous === 1 ? 'One rollout matches' : `${ambiguous} rollouts match`;
  return {
    rule: 'ambiguous_task',
    level: 'warning',
    text: `${rollouts} sessions of several tasks, so the task and the group are unknown. Send session_id in the metadata, or task_index in rollout_info.`,
    value: ambiguous,
    threshold: 0,
    q: 'has:ambiguous_task',
  };
}

/** Quiet: no rollout for five times the median step time, once three steps have ended. Stalled: six times and half an hour. */
function silence({ stepTimes, lastAt, finished, now }: AdvisoryInput): Advisory | null {
  const durations = stepTimes.slice(1).map((at, position) => at - stepTimes[position]!);
  if (finished || durations.length < 3 || lastAt === null) return null;
  const median = durations.toSorted((a, b) => a - b)[Math.floor(durations.length / 2)]!;
  const quiet = now - lastAt;
  if (median <= 0 || quiet <= 5 * median) return null;
  const stalled = quiet > 6 * median && quiet >= HALF_HOUR_MS;
  const text = `${stalled ? 'Stalled or ended: no' : 'No'} rollout for ${formatDuration(quiet)}; a step takes ${formatDuration(median)} (median).`;
  return {
    rule: stalled ? 'stalled' : 'quiet',
    level: stalled ? 'warning' : 'hint',
    text,
    value: quiet / median,
    threshold: stalled ? 6 : 5,
    q: null,
  };
}

function inference({ confidence }: AdvisoryInput): Advisory | null {
  if (confidence === null || confidence >= 0.9) return null;
  const text = `Palestra inferred the steps with a confidence of ${percent(confidence)}.`;
  return { rule: 'inferred_steps', level: 'hint', text, value: confidence, threshold: 0.9, q: 'prov.step:inferred,unknown' };
}

/** Compares the last quarter of at least 20 steps with the first: reward rises by more than 0.1 standard deviations, success by less than 0.01. */
function rewardWithoutSuccess({ rows }: AdvisoryInput): Advisory | null {
  if (rows.length < 20) return null;
  const quarter = Math.floor(rows.length / 4);
  const meanOf = (key: string, part: readonly StepRow[]) => {
    const figures = part.map((row) => readFigure(row.figures.canonical[key])).filter((figure) => figure !== null);
    const counted = figures.reduce((total, { denominator }) => total + denominator, 0);
    return counted === 0 ? null : figures.reduce((total, { value, denominator }) => total + (value ?? 0) * denominator, 0) / counted;
  };
  const [first, last] = [rows.slice(0, quarter), rows.slice(-quarter)];
  const change = (key: string) => (meanOf(key, last) ?? 0) - (meanOf(key, first) ?? 0);
  const [reward, success, spread] = [change('reward_mean'), change('success'), meanOf('reward_std', rows) ?? 0];
  if (!(reward > 0.1 * spread && reward > 0 && success < 0.01)) return null;
  const steps = `step:${last[0]!.step}..${last.at(-1)!.step}`;
  return {
    rule: 'reward_without_success',
    level: 'hint',
    text: 'The reward rises but the success rate does not.',
    value: reward,
    threshold: 0.1 * spread,
    q: steps,
  };
}

/** `4 s`, `58 min`, `3 h 5 min`. */
function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 120_000) return `${Math.round(ms / 1_000)} s`;
  const minutes = Math.round(ms / 60_000);
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
