import { Injectable } from '@nestjs/common';
import { histogram, lensRevision, select, type SuccessRule } from '@palestra/metrics';
import { type Denominator, type Lens, PalestraError, PHASES } from '@palestra/protocol';
import { Database } from '../../platform/database/database.ts';
import { factsOf, lensFigures, type StepFigures, type StoredFigure, successRule } from '../../store/derive/rollup/rollup.figures.ts';
import {
  type RollupTuple,
  selectPinnedThresholds,
  selectStepRows,
  selectThresholds,
  selectWindowRows,
} from '../../store/derive/rollup/rollup.sql.ts';
import { codeOf } from '../../store/codes.ts';
import {
  isWindow,
  keepFigures,
  keepWindowFigures,
  type MadeFigures,
  selectEnvironments,
  selectSteps,
  selectWindows,
  type StepRow,
  type WindowRow,
} from './step-figures.sql.ts';

/** One request makes so much at most, milliseconds; what is left is made by the next ones. */
const MAKE_MS = 1_500;
/** Steps whose rollouts are in memory at the same time. */
const BATCH = 8;

export interface Scope {
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

/** What is kept of a lens: of its later revisions under another name, so that figures of an earlier one are not read. */
const nameOf = ({ lens, den }: Pick<FigureSet, 'lens' | 'den'>, { env_ids }: StepRow) => {
  const revision = lensRevision(lens);
  const name = revision === 1 ? `${lens}/${den}` : `${lens}@${revision}/${den}`;
  return env_ids === undefined ? name : `${name} of ${env_ids.join('+')}`;
};
/** What histograms are made of, only when somebody asks. */
const MEASURED = {
  turns: (tuples: readonly RollupTuple[]) => tuples.flatMap((tuple) => tuple[11] ?? []),
  tokens: (tuples: readonly RollupTuple[]) => tuples.flatMap((tuple) => tuple[15] ?? []),
  /** Rewards of effective rollouts. */
  effective: (tuples: readonly RollupTuple[]) => select(tuples.map(factsOf), 'effective').counted.map(({ reward }) => reward),
} as const;
export type Measured = keyof typeof MEASURED;

/** Rollups of steps with what is made of them only when somebody asks: other lenses and denominators, histograms of turns and tokens. */
@Injectable()
export class StepFiguresService {
  constructor(private readonly database: Database) {}

  /** Rows by step; with `byEnv` one an environment, else of all together or of `env`. Throws 422 for an environment that the run has not. */
  async steps(scope: Scope, byEnv = false): Promise<{ rows: StepRow[]; names: Map<number, string | null> }> {
    const { filter, names } = await this.#filter(scope, byEnv);
    return { rows: await selectSteps(this.database.pool, { ...filter, steps: scope.steps }), names };
  }

  /** What came without a step, by window of arrival: rows like those of `steps`. None within a range of steps. */
  async windows(scope: Scope, byEnv = false): Promise<WindowRow[]> {
    if (scope.steps) return [];
    const { filter } = await this.#filter(scope, byEnv);
    return selectWindows(this.database.pool, filter);
  }

  async #filter(scope: Scope, byEnv: boolean) {
    const environments = byEnv || scope.env !== undefined ? await selectEnvironments(this.database.pool, scope.runSeq) : [];
    const wanted = scope.env === undefined ? environments : environments.filter(({ environment }) => environment === scope.env);
    if (scope.env !== undefined && wanted.length === 0)
      throw unknownEnvironment(
        scope.env,
        environments.flatMap(({ environment }) => environment ?? []),
      );
    return {
      filter: {
        runSeq: scope.runSeq,
        envIds: byEnv || scope.env !== undefined ? wanted.map(({ id }) => id) : null,
        phase: scope.phase === undefined ? undefined : codeOf(PHASES, scope.phase)!,
      },
      names: new Map(wanted.map(({ id, environment }) => [id, environment])),
    };
  }

  /** Makes sure of these figures. Answers the rows that have them, and whether some are still left to make. */
  async withFigures(runSeq: number, rows: readonly StepRow[], set: FigureSet): Promise<{ rows: StepRow[]; incomplete: boolean }> {
    const lacks = (row: StepRow) => {
      const made = figuresOf(row, set);
      return made === null || set.keys.some((key) => !(key in made));
    };
    return this.#make(runSeq, rows, lacks, (row, tuples, successOf) => {
      const figures = lensFigures({ lens: set.lens, denominator: set.den, keys: set.keys }, tuples, successOf);
      const name = nameOf(set, row);
      row.figures.lenses = { ...row.figures.lenses, [name]: { ...row.figures.lenses?.[name], ...figures } };
      return { set: name, lens: figures, histogram: null };
    });
  }

  async withHistograms(runSeq: number, rows: readonly StepRow[], of: Measured): Promise<{ rows: StepRow[]; incomplete: boolean }> {
    return this.#make(
      runSeq,
      rows,
      (row) => row.figures.histograms?.[of] === undefined,
      (row, tuples) => {
        const made = histogram(MEASURED[of](tuples));
        row.figures.histograms = { ...row.figures.histograms, [of]: made };
        return { set: of, lens: null, histogram: made };
      },
    );
  }

  async #make(
    runSeq: number,
    rows: readonly StepRow[],
    lacks: (row: StepRow) => boolean,
    make: (
      row: StepRow,
      tuples: readonly RollupTuple[],
      successOf: (envId: number) => SuccessRule,
    ) => Pick<MadeFigures, 'set' | 'lens' | 'histogram'>,
  ): Promise<{ rows: StepRow[]; incomplete: boolean }> {
    // The newest first: they are looked at.
    const left = rows.filter(lacks).toReversed();
    if (left.length === 0) return { rows: [...rows], incomplete: false };
    const { pool } = this.database;
    const thresholds = new Map((await selectThresholds(pool, [runSeq])).map((row) => [row.env_id, row.unit_rewards]));
    const pinned = (await selectPinnedThresholds(pool, [runSeq])).get(runSeq);
    const successOf = (envId: number): SuccessRule => successRule(pinned, thresholds.get(envId));
    const deadline = performance.now() + MAKE_MS;
    let at = 0;
    while (at < left.length && (at === 0 || performance.now() < deadline)) {
      const batch = left.slice(at, at + BATCH);
      at += batch.length;
      const tuples = await this.#tuplesOf(runSeq, batch);
      const made = batch.map((row, position) => {
        const envIds = row.env_ids ?? [row.env_id];
        const own = row.env_id === 0 ? tuples[position]! : tuples[position]!.filter((tuple) => envIds.includes(tuple[1]));
        return { row, env_id: row.env_id, phase: row.phase, step: row.step, version: row.version, ...make(row, own, successOf) };
      });
      const [windows, steps] = [made.filter(({ row }) => isWindow(row)), made.filter(({ row }) => !isWindow(row))];
      if (steps.length > 0)
        await keepFigures(
          pool,
          runSeq,
          steps.map(({ row: _row, ...one }) => one),
        );
      if (windows.length > 0)
        await keepWindowFigures(
          pool,
          runSeq,
          windows.map(({ row, ...one }) => ({ ...one, at: (row as WindowRow).window.at })),
        );
    }
    const missing = new Set(left.slice(at));
    return { rows: rows.filter((row) => !missing.has(row)), incomplete: missing.size > 0 };
  }

  /** Rollouts of each row's step or window, of all environments. */
  async #tuplesOf(runSeq: number, rows: readonly StepRow[]): Promise<RollupTuple[][]> {
    const { pool } = this.database;
    const first = rows[0]!;
    if (!isWindow(first))
      return selectStepRows(
        pool,
        rows.map(({ phase, step }) => ({ run_seq: runSeq, phase, step })),
      );
    const found = new Map<StepRow, RollupTuple[]>();
    for (const phase of new Set(rows.map((row) => row.phase))) {
      const own = rows.filter(isWindow).filter((row) => row.phase === phase);
      const tuples = await selectWindowRows(
        pool,
        { runSeq, phase },
        own.map(({ window }) => window),
      );
      own.forEach((row, at) => found.set(row, tuples[at]!));
    }
    return rows.map((row) => found.get(row)!);
  }
}

/** Null when they have not been made. */
export function figuresOf(row: StepRow, set: FigureSet): Record<string, StoredFigure> | null {
  const made = row.figures.lenses?.[nameOf(set, row)];
  if (set.lens === 'canonical' && set.den === 'scored' && row.env_ids === undefined) return { ...row.figures.canonical, ...made };
  return made ?? null;
}

/** Of its rewards, or of what `withHistograms` made. */
export function histogramOf(row: StepRow, of: 'reward' | Measured): StepFigures['histogram'] {
  return of === 'reward' ? row.figures.histogram : row.figures.histograms![of]!;
}

function unknownEnvironment(env: string, known: readonly string[]): PalestraError {
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
