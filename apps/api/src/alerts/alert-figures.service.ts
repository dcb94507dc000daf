import { estimateDifference } from '@palestra/metrics';
import { formatReward } from '@palestra/kit/reward-text';
import { type AlertEvidence, type BaselineCondition, type MetricCondition, PHASES } from '@palestra/protocol';
import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Database } from '../platform/database/database.ts';
import { mainPhase } from '../runs/curves/main-phase.ts';
import { cellsOf } from '../runs/insights/compare-metrics.ts';
import { selectTaskSums } from '../runs/insights/compare-runs.sql.ts';
import { selectToolSteps } from '../runs/insights/run-tools.sql.ts';
import { figureOf, type FigureSet, StepFiguresService } from '../store/figures/step-figures.service.ts';
import { selectEnvironments, type StepRow } from '../store/figures/step-figures.sql.ts';
import { codeOf } from '../store/vocabulary-codes.ts';
import type { Judgement } from './alert-state.ts';
import { inEnvironment } from './alert-text.ts';
import { environmentClause, judgeSteps, mergeSteps, type StepJudgements, type StepPoint } from './step-judgements.ts';

/** The figures of the pages, by default. */
const FIGURES: FigureSet = { lens: 'canonical', den: 'effective', keys: [] };
/** Steps of one judgement that a baseline is compared at; each reads the rollouts of two steps. */
export const MAX_BASELINE_STEPS = 50;
const MAX_TASKS = 5_000;
const KEEP_ROWS_MS = 10_000;

/** A run, and the version of the figures that are judged. */
export interface JudgedRun {
  seq: number;
  version: string;
}

/** Which steps of a run are judged. */
export interface StepRange {
  /** First judged step; null = the newest one only. */
  from: number | null;
  /** Leaves out the newest step, of a baseline too: its rollouts may not be derived yet. */
  withoutNewest: boolean;
}

/** Judges the steps of a run by the figures that its pages show (docs/reference/alerts.md). */
@Injectable()
export class AlertFigures {
  /** The alerts of a run are judged one after another. Rows of a long run are large: they are not kept. */
  readonly #rows = new LRUCache<string, Promise<StepRow[]>>({ max: 2, ttl: KEEP_ROWS_MS, ttlAutopurge: true });

  constructor(
    private readonly database: Database,
    private readonly figures: StepFiguresService,
  ) {}

  async metric(run: JudgedRun, condition: MetricCondition, range: StepRange): Promise<StepJudgements> {
    const known = settled(await this.#points(run, condition), range);
    const judged = judgeSteps(condition, known, range.from ?? -Infinity);
    return range.from === null ? { ...judged, judgements: judged.judgements.slice(-1) } : judged;
  }

  /** Compares the mean reward of each step with that of the baseline at the same step, as the comparison of runs does. */
  async baseline(
    run: JudgedRun,
    condition: BaselineCondition,
    baseline: { seq: number; id: string; name: string },
    range: StepRange,
  ): Promise<StepJudgements & { incomplete: boolean }> {
    const { environment } = condition;
    const [rows, others] = await Promise.all([this.#rowsOf(run, environment), this.#steps(baseline.seq, environment)]);
    const { phase, rows: own } = mainPhase(rows, condition.phase ?? undefined);
    const code = codeOf(PHASES, phase);
    const theirs = new Set(settled(stepsOf(others.filter((row) => row.phase === code)), range));
    const common = settled(stepsOf(own), range).filter((step) => theirs.has(step) && step >= (range.from ?? 0));
    const steps = range.from === null ? common.slice(-1) : common.slice(-MAX_BASELINE_STEPS);
    const judgements: Judgement[] = [];
    let skipped = 0;
    for (const step of steps) {
      const judgement = await this.#compare(run.seq, condition, baseline, { step, phase: code });
      if (judgement === null) skipped += 1;
      else judgements.push(judgement);
    }
    return { judgements, skipped, incomplete: range.from !== null && common.length > steps.length };
  }

  async #compare(
    runSeq: number,
    condition: BaselineCondition,
    baseline: { seq: number; id: string; name: string },
    { step, phase }: { step: number; phase: number | null },
  ): Promise<Judgement | null> {
    const { margin, min_n, environment } = condition;
    const read = (seq: number) =>
      selectTaskSums(this.database.pool, { runSeq: seq, phase, steps: [step], env: environment, den: 'effective', limit: MAX_TASKS });
    const [own, theirs] = (await Promise.all([read(runSeq), read(baseline.seq)])).map((sums) => cellsOf('reward_mean', sums));
    const found = estimateDifference(theirs!, own!);
    if (!found || Math.min(found.first.samples, found.other.samples) < min_n) return null;
    const { difference, low, high, first, other } = found;
    const range = low === null || high === null ? '' : `, 95 % interval ${signed(low)} to ${signed(high)}`;
    const evidence: AlertEvidence = {
      text: `Mean reward${inEnvironment(condition)}: ${formatReward(other.mean)} at step ${step}, ${formatReward(first.mean)} in ${baseline.name} (difference ${signed(difference)}${range}, ${other.samples} and ${first.samples} rollouts).`,
      value: difference,
      threshold: 0 - margin,
      n: other.samples,
      low,
      high,
      from_step: step,
      step,
      q: [`step:${step} is:scored`, ...environmentClause(environment)].join(' '),
      baseline: baseline.id,
    };
    return { step, at: null, holds: high !== null && high < -margin, evidence };
  }

  async #rowsOf({ seq, version }: JudgedRun, environment: string | null): Promise<StepRow[]> {
    const key = JSON.stringify([seq, version, environment]);
    const read = this.#rows.get(key) ?? this.#steps(seq, environment);
    this.#rows.set(key, read);
    read.catch(() => this.#rows.delete(key));
    return read;
  }

  /** Rollups of all environments together, or of each variant of one; none for a run without it. */
  async #steps(runSeq: number, environment: string | null): Promise<StepRow[]> {
    if (environment === null) return (await this.figures.steps({ runSeq })).rows;
    const known = await selectEnvironments(this.database.pool, runSeq);
    return known.some((one) => one.environment === environment) ? (await this.figures.steps({ runSeq, env: environment })).rows : [];
  }

  async #points(run: JudgedRun, condition: MetricCondition): Promise<StepPoint[]> {
    const { environment, tool } = condition;
    const { phase, rows: known } = mainPhase(await this.#rowsOf(run, environment), condition.phase ?? undefined);
    if (condition.metric === 'tool_error' && tool !== null) {
      const scope = { runSeq: run.seq, phase: codeOf(PHASES, phase), from: 0, to: 2_147_483_647 };
      const envIds = environment === null ? null : [...new Set(known.map((row) => row.env_id))];
      const byStep = new Map((await selectToolSteps(this.database.pool, scope, tool, envIds)).map((row) => [row.step, row]));
      return stepsOf(known).map((step) => ({
        step,
        count: byStep.get(step)?.calls ?? 0,
        sum: byStep.get(step)?.errors ?? 0,
        squares: null,
      }));
    }
    return mergeSteps(known.map((row) => ({ step: row.step, ...sumsOf(condition, row) })));
  }
}

/** The steps of rows that are in their order. */
const stepsOf = (rows: readonly StepRow[]): number[] => [...new Set(rows.map(({ step }) => step))];

const signed = (value: number): string => formatReward(value, { signed: true });

function settled<T>(steps: readonly T[], { withoutNewest }: StepRange): readonly T[] {
  return withoutNewest ? steps.slice(0, -1) : steps;
}

/** The counts behind a figure of the step's rollup. */
function sumsOf({ metric, stop }: MetricCondition, row: StepRow): Omit<StepPoint, 'step'> {
  if (metric === 'stop_share') return { count: row.rollouts, sum: row.figures.stops[stop!] ?? 0, squares: null };
  if (metric === 'failed') {
    const { env_error: environment = 0, infra_error: infrastructure = 0 } = row.figures.stops;
    return { count: row.rollouts, sum: environment + infrastructure, squares: null };
  }
  const figure = figureOf(row, FIGURES, metric);
  if (figure?.value == null) return { count: 0, sum: 0, squares: metric === 'reward_mean' ? 0 : null };
  const { value, denominator: count } = figure;
  if (metric !== 'reward_mean') return { count, sum: Math.round(value * count), squares: null };
  const std = figureOf(row, FIGURES, 'reward_std')?.value ?? 0;
  return { count, sum: value * count, squares: (count - 1) * std ** 2 + count * value ** 2 };
}
