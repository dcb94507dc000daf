import { Injectable } from '@nestjs/common';
import { type Advisory, PHASES, STOP_REASONS, type StreamAdvisories } from '@palestra/protocol';
import { LRUCache } from 'lru-cache';
import { Database } from '../../platform/database/database.ts';
import { codeOf } from '../../store/vocabulary-codes.ts';
import { type RunState, selectRunState } from '../run-scope.sql.ts';
import { mainPhase } from './main-phase.ts';
import { mergeFigures } from './merge-figures.ts';
import { advisoriesOf } from './run-advisories.ts';
import { adviceOf } from '../moves/cause-words.ts';
import { RunMovesService } from '../moves/run-moves.service.ts';
import { selectRecent } from './run-summary.sql.ts';
import { StepFiguresService } from '../../store/figures/step-figures.service.ts';
import { selectStepTimes, type StepRow } from '../../store/figures/step-figures.sql.ts';

/** How many of the last steps are timed. */
const TIMED_STEPS = 30;
const INTERRUPTED = [codeOf(STOP_REASONS, 'aborted')!, codeOf(STOP_REASONS, 'cancelled')!];
/** Falls of the reward that a run reports. */
const MAX_FALLS = 3;
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
    private readonly moves: RunMovesService,
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
    const [recent, times, falls] = await Promise.all([
      selectRecent(pool, run.seq, INTERRUPTED),
      selectStepTimes(pool, run.seq, steps),
      this.#falls(run.seq, rows),
    ]);
    const merged = new Map(mergeFigures(rows, { lens: 'canonical', den: 'effective', keys: [] }).map((kpi) => [kpi.key, kpi.value]));
    const confidence = run.inference?.confidence;
    const found = advisoriesOf({
      rows,
      value: (key) => merged.get(key) ?? null,
      confidence: typeof confidence === 'number' && Number(run.inference?.rollouts ?? 0) > 0 ? confidence : null,
      recent,
      stepTimes: steps.flatMap((step) => times.get(step) ?? []).toSorted((a, b) => a - b),
      lastAt: run.as_of?.getTime() ?? null,
      finished: run.finished,
      now: Date.now(),
    });
    return [...falls, ...found];
  }

  /** The largest falls of the reward, with their likely cause. */
  async #falls(runSeq: number, rows: readonly StepRow[]): Promise<Advisory[]> {
    const first = rows.find(({ step }) => step >= 0);
    if (!first) return [];
    const envIds = [...new Set(rows.map(({ env_id }) => env_id))].filter((id) => id !== 0);
    const scope = { phase: first.phase, envIds: envIds.length === 0 ? null : envIds, steps: new Set(rows.map(({ step }) => step)) };
    const falls = await this.moves.falls(runSeq, scope, MAX_FALLS);
    return falls.map(({ step, difference, text, causes: [cause] }) => ({
      rule: 'reward_fell',
      level: 'warning',
      text: adviceOf(text, cause),
      value: difference,
      threshold: null,
      q: cause?.q ?? `step:${step}`,
      step,
    }));
  }
}
