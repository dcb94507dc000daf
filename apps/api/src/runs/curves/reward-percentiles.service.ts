import { Injectable } from '@nestjs/common';
import { binWidth, histogram, mergeHistograms, percentileOfCounts, percentileOfHistogram, type RewardHistogram } from '@palestra/metrics';
import type { Denominator } from '@palestra/protocol';
import { Database } from '../../platform/database/database.ts';
import { figureOf, histogramOf, StepFiguresService } from '../../store/figures/step-figures.service.ts';
import { selectPercentiles } from './run-summary.sql.ts';
import type { StepRow } from '../../store/figures/step-figures.sql.ts';
import { readFigure } from '../../store/figures/step-rollup.ts';

/** Those of the canonical figures `reward_p10` and so on. */
export const PERCENTILES = [10, 25, 50, 75, 90] as const;
/** Up to this number of rollouts one statement computes percentiles in some 10 ms. */
const MAX_READ = 20_000;

export interface Percentiles {
  /** One for each of `PERCENTILES`. */
  values: (number | null)[];
  /** How they were estimated; null when they are exact. */
  note: string | null;
  incomplete: boolean;
}

export interface StepSpan {
  runSeq: number;
  envIds: readonly number[] | null;
  den: Denominator;
}

/**
 * Percentiles of the rewards of several steps together. Exact where every step has few different rewards (rollups count each), or where the
 * steps have few enough rollouts to read; else estimated from the steps' histograms, and the note says so.
 */
@Injectable()
export class RewardPercentiles {
  constructor(
    private readonly database: Database,
    private readonly figures: StepFiguresService,
  ) {}

  /** `rows`: of one phase, by step. */
  async of(rows: readonly StepRow[], { runSeq, envIds, den }: StepSpan): Promise<Percentiles> {
    const counted = countsOf(rows, den);
    if (counted) return exact(PERCENTILES.map((p) => percentileOfCounts(counted, p / 100)));
    if (rows.reduce((total, row) => total + row.rollouts, 0) <= MAX_READ) {
      const span = { runSeq, from: rows[0]!.step, to: rows.at(-1)!.step, phase: rows[0]!.phase, envIds };
      return exact(
        await selectPercentiles(
          this.database.pool,
          span,
          den,
          PERCENTILES.map((p) => p / 100),
        ),
      );
    }
    return this.#fromHistograms(rows, runSeq, den);
  }

  async #fromHistograms(rows: readonly StepRow[], runSeq: number, den: Denominator): Promise<Percentiles> {
    const read = den === 'effective' ? { rows, incomplete: false } : await this.figures.withHistograms(runSeq, rows, 'scored');
    const parts = read.rows.map((row) => histogramOf(row, den === 'effective' ? 'reward' : 'scored'));
    const nulls = den === 'all' ? rows.reduce((total, row) => total + nullsOf(row), 0) : 0;
    const merged = [...parts, ...(nulls > 0 ? [zeros(nulls)] : [])].reduce(mergeHistograms, histogram([]));
    const ends = (key: string) => rows.flatMap((row) => figureOf(row, { lens: 'canonical', den, keys: [] }, key)?.value ?? []);
    const [lows, highs] = [ends('reward_min'), ends('reward_max')];
    const least = lows.length === 0 ? undefined : lows.reduce((a, b) => Math.min(a, b));
    const most = highs.length === 0 ? undefined : highs.reduce((a, b) => Math.max(a, b));
    return {
      values: PERCENTILES.map((p) => percentileOfHistogram(merged, p / 100, least, most)),
      note: `from histograms: within ${Number(binWidth(merged).toPrecision(3))} of the exact value`,
      incomplete: read.incomplete,
    };
  }
}

const exact = (values: (number | null)[]): Percentiles => ({ values, note: null, incomplete: false });

function zeros(count: number): RewardHistogram {
  const one = histogram([0]);
  return { ...one, counts: one.counts.map((there) => there * count) };
}

/** Rollouts without a reward and without a partial sum. */
export const nullsOf = ({ rollouts, figures }: StepRow): number => rollouts - (readFigure(figures.canonical['scored'])?.value ?? 0);

/** Null when a step has too many different rewards to count each. */
function countsOf(rows: readonly StepRow[], den: Denominator): [value: number, count: number][] | null {
  const counts = new Map<number, number>();
  for (const row of rows) {
    const { rewards } = row.figures;
    if (!rewards) return null;
    for (const [value, scored, effective] of rewards)
      counts.set(value, (counts.get(value) ?? 0) + (den === 'effective' ? effective : scored));
    if (den === 'all') counts.set(0, (counts.get(0) ?? 0) + nullsOf(row));
  }
  return [...counts];
}
