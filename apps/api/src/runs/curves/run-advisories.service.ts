import { Injectable } from '@nestjs/common';
import { type Advisory, PHASES, STOP_REASONS, type StreamAdvisories } from '@palestra/protocol';
import { LRUCache } from 'lru-cache';
import { Database } from '../../platform/database/database.ts';
import { codeOf } from '../../store/vocabulary-codes.ts';
import { type RunState, selectRunState } from '../run-scope.sql.ts';
import { mainPhase } from './main-phase.ts';
import { mergeFigures } from './merge-figures.ts';
import { advisoriesOf } from './run-advisories.ts';
import { selectRecent } from './run-summary.sql.ts';
import { StepFiguresService } from '../../store/figures/step-figures.service.ts';
import { selectStepTimes, type StepRow } from '../../store/figures/step-figures.sql.ts';

/** How many of the last steps are timed. */
const TIMED_STEPS = 30;
const INTERRUPTED = [codeOf(STOP_REASONS, 'aborted')!, codeOf(STOP_REASONS, 'cancelled')!];
/** Some advisories depend on the clock, so the advisories of a version of the figures expire. */
const CACHE_MS = 10_000;
/** Bounds the runs whose pages are open at the same time. */
const MAX_CACHED = 200;

/** Finds unusual conditions of a run. */
@Injectable()
export class RunAdvisoriesService {
  /** All readers of a run ask at the same moment, when its figures change. */
  readonly #cache = new LRUCache<number, { version: string; news: Promise<StreamAdvisories> }>({ max: MAX_CACHED, ttl: CACHE_MS });

  constructor(
    private readonly database: Database,
    private readonly figures: StepFiguresService,
  ) {}

  /** Returns the advisories of the main phase of a whole run, as `GET /v1/runs/{run}/summary` without a range. Throws `run_not_found`. */
  async current(runSeq: number): Promise<StreamAdvisories> {
    const run = await selectRunState(this.database.pool, runSeq);
    const cached = this.#cache.get(runSeq);
    if (cached?.version === run.version) return cached.news;
    const news = this.#ofRun(run);
    this.#cache.set(runSeq, { version: run.version, news });
    news.catch(() => this.#cache.delete(runSeq));
    return news;
  }

  async #ofRun(run: RunState): Promise<StreamAdvisories> {
    const read = await this.figures.steps({ runSeq: run.seq });
    const { phase, rows } = mainPhase(read.rows, undefined);
    const all = rows.length > 0 ? rows : read.rows.filter((row) => row.phase === codeOf(PHASES, phase));
    return { advisories: await this.of(run, all), v: run.version };
  }

  /** `rows`: the rows of one phase in the order of their steps. */
  async of(run: RunState, rows: readonly StepRow[]): Promise<Advisory[]> {
    const { pool } = this.database;
    const steps = [...new Set(rows.map(({ step }) => step))].filter((step) => step >= 0).slice(-TIMED_STEPS);
    const [recent, times] = await Promise.all([selectRecent(pool, run.seq, INTERRUPTED), selectStepTimes(pool, run.seq, steps)]);
    const merged = new Map(mergeFigures(rows, { lens: 'canonical', den: 'effective', keys: [] }).map((kpi) => [kpi.key, kpi.value]));
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
