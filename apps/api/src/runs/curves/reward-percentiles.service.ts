import { Injectable } from '@nestjs/common';
import {
  binWidth,
  histogram,
  mergeHistograms,
  NOT_THE_POLICY,
  percentileOfCounts,
  percentileOfHistogram,
  type RewardHistogram,
} from '@palestra/metrics';
import { type Denominator, STOP_REASONS } from '@palestra/protocol';
import { Database } from '../../platform/database/database.ts';
import { codeOf } from '../../store/vocabulary-codes.ts';
import { histogramOf, StepFiguresService } from '../../store/figures/step-figures.service.ts';
import { selectPercentiles } from './run-summary.sql.ts';
import type { StepRow } from '../../store/figures/step-figures.sql.ts';
import { readFigure } from '../../store/figures/step-rollup.ts';

/** Those of the canonical figures `reward_p10` and so on. */
export const PERCENTILES = [10, 25, 50, 75, 90] as const;
/** Up to this number of rollouts one statement computes percentiles in some 10 ms. */
const MAX_READ = 20_000;
const FAILED_STOPS = [...NOT_THE_POLICY].map((stop) => codeOf(STOP_REASONS, stop)!);

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
          FAILED_STOPS,
          PERCENTILES.map((p) => p / 100),
        ),
      );
    }
    return this.#fromHistograms(rows, runSeq, den);
  }

  async #fromHistograms(rows: readonly StepRow[], runSeq: number, den: Denominator): Promise<Percentiles> {
    const read = den === 'effective' ? await this.figures.withHistograms(runSeq, rows, 'effective') : { rows, incomplete: false };
    const parts = read.rows.map((row) => histogramOf(row, den === 'effective' ? 'effective' : 'reward'));
    const nulls = den === 'all' ? rows.reduce((total, row) => total + row.rollouts - row.scored, 0) : 0;
    const merged = [...parts, ...(nulls > 0 ? [zeros(nulls)] : [])].reduce(mergeHistograms, histogram([]));
    // The range of all scored rewards; that of the effective ones can be smaller.
    const ends = (key: string) => rows.flatMap((row) => readFigure(row.figures.canonical[key])?.value ?? []);
    const least = [...ends('reward_min'), ...(nulls > 0 ? [0] : [])].reduce((a, b) => Math.min(a, b), Infinity);
    const most = [...ends('reward_max'), ...(nulls > 0 ? [0] : [])].reduce((a, b) => Math.max(a, b), -Infinity);
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

/** Null when a step has too many different rewards to count each. */
function countsOf(rows: readonly StepRow[], den: Denominator): [value: number, count: number][] | null {
  const counts = new Map<number, number>();
  for (const { figures, rollouts, scored } of rows) {
    if (!figures.rewards) return null;
    for (const [value, all, effective] of figures.rewards)
      counts.set(value, (counts.get(value) ?? 0) + (den === 'effective' ? effective : all));
    if (den === 'all' && rollouts > scored) counts.set(0, (counts.get(0) ?? 0) + rollouts - scored);
  }
  return [...counts];
}
