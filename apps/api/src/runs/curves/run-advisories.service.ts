import { Injectable } from '@nestjs/common';
import { PHASES, STOP_REASONS } from '@palestra/protocol';
import { Database } from '../../platform/database/database.ts';
import { codeOf } from '../../store/codes.ts';
import { type RunState, selectRunState } from '../run-scope.sql.ts';
import { mainPhase } from './main-phase.ts';
import { mergeFigures } from './merge-figures.ts';
import { type Advisory, advisoriesOf } from './run-advisories.ts';
import { selectRecent } from './run-summary.sql.ts';
import { StepFiguresService } from './step-figures.service.ts';
import { selectStepTimes, type StepRow } from './step-figures.sql.ts';

/** Steps whose duration tells how long a step takes. */
const TIMED_STEPS = 30;
const BROKEN_OFF = [codeOf(STOP_REASONS, 'aborted')!, codeOf(STOP_REASONS, 'cancelled')!];
/** Some follow from the clock: what was found for a version of the figures is good for so long. */
const KEEP_MS = 10_000;
/** Runs that somebody looks at right now. */
const MAX_KEPT = 200;

export interface AdvisoryNews {
  advisories: Advisory[];
  /** Version of the figures that they are about. */
  v: string;
}

interface Kept {
  version: string;
  until: number;
  news: Promise<AdvisoryNews>;
}

/** What is odd about a run. */
@Injectable()
export class RunAdvisoriesService {
  /** Many readers of one run ask at the same moment: when its figures changed. */
  readonly #kept = new Map<number, Kept>();

  constructor(
    private readonly database: Database,
    private readonly figures: StepFiguresService,
  ) {}

  /** Of the whole run, its main phase: as `GET /v1/runs/{run}/summary` without a range tells them. Throws `run_not_found`. */
  async current(runSeq: number): Promise<AdvisoryNews> {
    const run = await selectRunState(this.database.pool, runSeq);
    const kept = this.#kept.get(runSeq);
    if (kept && kept.version === run.version && Date.now() < kept.until) return kept.news;
    const news = this.#ofRun(run);
    this.#kept.delete(runSeq);
    this.#kept.set(runSeq, { version: run.version, until: Date.now() + KEEP_MS, news });
    if (this.#kept.size > MAX_KEPT) this.#kept.delete(this.#kept.keys().next().value!);
    news.catch(() => this.#kept.delete(runSeq));
    return news;
  }

  async #ofRun(run: RunState): Promise<AdvisoryNews> {
    const read = await this.figures.steps({ runSeq: run.seq });
    const { phase, rows } = mainPhase(read.rows, undefined);
    const all = rows.length > 0 ? rows : read.rows.filter((row) => row.phase === codeOf(PHASES, phase));
    return { advisories: await this.of(run, all), v: run.version };
  }

  /** `rows`: of one phase, by step. */
  async of(run: RunState, rows: readonly StepRow[]): Promise<Advisory[]> {
    const { pool } = this.database;
    const steps = [...new Set(rows.map(({ step }) => step))].filter((step) => step >= 0).slice(-TIMED_STEPS);
    const [recent, times] = await Promise.all([selectRecent(pool, run.seq, BROKEN_OFF), selectStepTimes(pool, run.seq, steps)]);
    const merged = new Map(mergeFigures(rows, { lens: 'canonical', den: 'scored', keys: [] }).map((kpi) => [kpi.key, kpi.value]));
    const confidence = run.inference?.confidence;
    return advisoriesOf({
      rows,
      value: (key) => merged.get(key) ?? null,
      confidence: typeof confidence === 'number' && Number(run.inference?.rollouts ?? 0) > 0 ? confidence : null,
      recent,
      stepTimes: steps.flatMap((step) => times.get(step) ?? []).toSorted((a, b) => a - b),
      lastAt: run.as_of?.getTime() ?? null,
      now: Date.now(),
    });
  }
}
