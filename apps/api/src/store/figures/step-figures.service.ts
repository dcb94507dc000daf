import { Injectable } from '@nestjs/common';
import { countOf, type Figure, histogram, lensRevision, select, type SuccessRule, takeRollouts } from '@palestra/metrics';
import { TimeSlice } from '@palestra/kit';
import { type Denominator, type Lens, PalestraError, PHASES } from '@palestra/protocol';
import { Database } from '../../platform/database/database.ts';
import { codeOf, wordOf } from '../vocabulary-codes.ts';
import type { StepColumns } from './step-columns.ts';
import { selectStepColumns, selectWindowColumns } from './step-columns.sql.ts';
import {
  type ComputedFigures,
  isWindow,
  selectEnvironments,
  selectSteps,
  selectWindows,
  type StepRow,
  storeFigures,
  storeWindowFigures,
  type WindowRow,
} from './step-figures.sql.ts';
import { lensFigures, readFigure, type StepFigures } from './step-rollup.ts';
import { selectSuccessRules } from './success-thresholds.sql.ts';

/** How long one request computes figures. The next requests compute the rest. */
const COMPUTE_MS = 200;
/** Bounds what one statement reads, and so how much later than after `COMPUTE_MS` an answer comes. One step is always read. */
const BATCH_ROLLOUTS = 4_000;
const BATCH_STEPS = 64;

/** Which steps of a run. */
export interface StepSelection {
  runSeq: number;
  /** Name of an environment: all variants of it. */
  env?: string;
  phase?: (typeof PHASES)[number];
  steps?: { from: number; to: number };
}

/** A lens with a denominator; only the canonical one has a choice. */
export interface FigureSet {
  lens: Lens;
  den: Denominator;
  /** Keys that a lens does not name by itself: `pass@3`. */
  keys: readonly string[];
}

/** The name under which the figures are stored. Later revisions of a lens have another name, so that figures of an earlier one are not read. */
const nameOf = ({ lens, den }: Pick<FigureSet, 'lens' | 'den'>, { env_ids }: StepRow) => {
  const revision = lensRevision(lens);
  const name = revision === 1 ? `${lens}/${den}` : `${lens}@${revision}/${den}`;
  return env_ids === undefined ? name : `${name} of ${env_ids.join('+')}`;
};
/** The values of histograms that are computed at the first request. */
const HISTOGRAM_VALUES = {
  turns: ({ turns }: StepColumns) => turns.filter((count) => count !== null),
  tokens: ({ tokensOut }: StepColumns) => tokensOut.filter((count) => count !== null),
  /** Rewards and the partial sums of interrupted rollouts. */
  scored: (columns: StepColumns) => select(columns, 'scored').rewards,
} as const;
export type HistogramName = keyof typeof HISTOGRAM_VALUES;

/** Rollups of steps, and what is computed at the first request for it: other lenses and denominators, histograms of turns and tokens. */
@Injectable()
export class StepFiguresService {
  constructor(private readonly database: Database) {}

  /** Rows by step; with `byEnv` one per environment, else of all together or of `env`. Throws 422 for an environment that the run does not have. */
  async steps(selection: StepSelection, byEnv = false): Promise<{ rows: StepRow[]; names: Map<number, string | null> }> {
    const { filter, names } = await this.#filter(selection, byEnv);
    return { rows: await selectSteps(this.database.pool, { ...filter, steps: selection.steps }), names };
  }

  /** Rollouts without a step, by arrival window: rows like those of `steps`. Empty for a range of steps. */
  async windows(selection: StepSelection, byEnv = false): Promise<WindowRow[]> {
    if (selection.steps) return [];
    const { filter } = await this.#filter(selection, byEnv);
    return selectWindows(this.database.pool, filter);
  }

  async #filter({ runSeq, env, phase }: StepSelection, byEnv: boolean) {
    const environments = byEnv || env !== undefined ? await selectEnvironments(this.database.pool, runSeq) : [];
    const wanted = env === undefined ? environments : environments.filter(({ environment }) => environment === env);
    if (env !== undefined && wanted.length === 0)
      throw unknownEnvironment(
        env,
        environments.flatMap(({ environment }) => environment ?? []),
      );
    return {
      filter: {
        runSeq,
        envIds: byEnv || env !== undefined ? wanted.map(({ id }) => id) : null,
        phase: phase === undefined ? undefined : codeOf(PHASES, phase)!,
      },
      names: new Map(wanted.map(({ id, environment }) => [id, environment])),
    };
  }

  /** Computes missing figures of the set. Returns the rows that have them, and whether others are still missing. */
  async withFigures(runSeq: number, rows: readonly StepRow[], set: FigureSet): Promise<{ rows: StepRow[]; incomplete: boolean }> {
    const lacks = (row: StepRow) => {
      const keys = figureKeys(row, set);
      return keys === null || set.keys.some((key) => !keys.includes(key));
    };
    const names = rows.some(lacks) && set.lens === 'skyrl' ? await selectEnvironments(this.database.pool, runSeq) : [];
    const environments = new Map(names.map(({ id, environment }) => [String(id), environment]));
    return this.#compute(runSeq, rows, lacks, (row, columns, ruleOf) => {
      const phase = wordOf(PHASES, row.phase) ?? 'unknown';
      const figures = lensFigures({ lens: set.lens, keys: set.keys, denominator: set.den, phase, environments }, columns, ruleOf);
      const name = nameOf(set, row);
      row.figures.lenses = { ...row.figures.lenses, [name]: { ...row.figures.lenses?.[name], ...figures } };
      return { set: name, lens: figures, histogram: null };
    });
  }

  async withHistograms(runSeq: number, rows: readonly StepRow[], of: HistogramName): Promise<{ rows: StepRow[]; incomplete: boolean }> {
    return this.#compute(
      runSeq,
      rows,
      (row) => row.figures.histograms?.[of] === undefined,
      (row, columns) => {
        const computed = histogram(HISTOGRAM_VALUES[of](columns));
        row.figures.histograms = { ...row.figures.histograms, [of]: computed };
        return { set: of, lens: null, histogram: computed };
      },
    );
  }

  async #compute(
    runSeq: number,
    rows: readonly StepRow[],
    lacks: (row: StepRow) => boolean,
    compute: (
      row: StepRow,
      columns: StepColumns,
      ruleOf: (envId: number) => SuccessRule,
    ) => Pick<ComputedFigures, 'set' | 'lens' | 'histogram'>,
  ): Promise<{ rows: StepRow[]; incomplete: boolean }> {
    // The newest first: people look at these.
    const left = rows.filter(lacks).toReversed();
    if (left.length === 0) return { rows: [...rows], incomplete: false };
    const { pool } = this.database;
    const rules = await selectSuccessRules(pool, [runSeq]);
    const deadline = performance.now() + COMPUTE_MS;
    const slice = new TimeSlice();
    let at = 0;
    while (at < left.length && (at === 0 || performance.now() < deadline)) {
      const batch = batchOf(left, at);
      at += batch.length;
      const columns = await this.#columnsOf(runSeq, batch);
      const computed = [];
      for (const [position, row] of batch.entries()) {
        if (slice.isOver) await slice.renew();
        const figures = compute(row, environmentsOf(row, columns[position]!), (envId) => rules(runSeq, envId));
        computed.push({ row, env_id: row.env_id, phase: row.phase, step: row.step, version: row.version, ...figures });
      }
      const [windows, steps] = [computed.filter(({ row }) => isWindow(row)), computed.filter(({ row }) => !isWindow(row))];
      if (steps.length > 0)
        await storeFigures(
          pool,
          runSeq,
          steps.map(({ row: _row, ...one }) => one),
        );
      if (windows.length > 0)
        await storeWindowFigures(
          pool,
          runSeq,
          windows.map(({ row, ...one }) => ({ ...one, at: (row as WindowRow).window.at })),
        );
    }
    const missing = new Set(left.slice(at));
    return { rows: rows.filter((row) => !missing.has(row)), incomplete: missing.size > 0 };
  }

  /** The rollouts of each row's step or window, of all environments. */
  async #columnsOf(runSeq: number, rows: readonly StepRow[]): Promise<StepColumns[]> {
    const { pool } = this.database;
    const first = rows[0]!;
    if (!isWindow(first))
      return selectStepColumns(
        pool,
        rows.map(({ phase, step }) => ({ run_seq: runSeq, phase, step })),
      );
    const found = new Map<StepRow, StepColumns>();
    for (const phase of new Set(rows.map((row) => row.phase))) {
      const ofPhase = rows.filter(isWindow).filter((row) => row.phase === phase);
      const columns = await selectWindowColumns(
        pool,
        { runSeq, phase },
        ofPhase.map(({ window }) => window),
      );
      ofPhase.forEach((row, at) => found.set(row, columns[at]!));
    }
    return rows.map((row) => found.get(row)!);
  }
}

/** The next rows whose rollouts are in memory at the same time. */
function batchOf(rows: readonly StepRow[], from: number): StepRow[] {
  let to = from + 1;
  for (let rollouts = rows[from]!.rollouts; to < rows.length && to - from < BATCH_STEPS; to += 1) {
    rollouts += rows[to]!.rollouts;
    if (rollouts > BATCH_ROLLOUTS) break;
  }
  return rows.slice(from, to);
}

/** The rollouts of the row's environments. */
function environmentsOf({ env_id, env_ids = [env_id] }: StepRow, columns: StepColumns): StepColumns {
  if (env_id === 0) return columns;
  const places = columns.envId.flatMap((id, at) => (env_ids.includes(id) ? [at] : []));
  return places.length === countOf(columns) ? columns : takeRollouts(columns, places);
}

/** A rollup has the canonical figures of effective rollouts from the start. */
const isRolledUp = ({ lens, den }: FigureSet, row: StepRow): boolean =>
  lens === 'canonical' && den === 'effective' && row.env_ids === undefined;

/** The keys of the figures that are computed; null when those of the set are not computed yet. */
export function figureKeys(row: StepRow, set: FigureSet): string[] | null {
  const computed = row.figures.lenses?.[nameOf(set, row)];
  if (isRolledUp(set, row)) return [...new Set([...Object.keys(row.figures.canonical), ...Object.keys(computed ?? {})])];
  return computed === undefined ? null : Object.keys(computed);
}

/** null when it is not computed yet, or not in the upload. */
export function figureOf(row: StepRow, set: FigureSet, key: string): Figure | null {
  const computed = row.figures.lenses?.[nameOf(set, row)];
  return readFigure(computed?.[key] ?? (isRolledUp(set, row) ? row.figures.canonical[key] : undefined));
}

/** Of rewards, or a histogram that `withHistograms` computed. */
export function histogramOf(row: StepRow, of: 'reward' | HistogramName): StepFigures['histogram'] {
  return of === 'reward' ? row.figures.histogram : row.figures.histograms![of]!;
}

export function unknownEnvironment(env: string, known: readonly string[]): PalestraError {
  const detail = [
    {
      type: 'value_error',
      loc: ['query', 'env'],
      msg: `The run has no environment ${env.slice(0, 100)}.`,
      input: env,
      known: known.slice(0, 20),
    },
  ];
  return new PalestraError('invalid_body', { detail });
}
