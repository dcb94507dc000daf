import { Injectable } from '@nestjs/common';
import { type Denominator, histogram, type Lens, select, type SuccessRule } from '@palestra/metrics';
import { PalestraError } from '@palestra/protocol';
import { Database } from '../../platform/database.ts';
import { factsOf, lensFigures, type StepFigures, type StoredFigure, successRule } from '../../rollouts/derive/rollup.figures.ts';
import { type RollupTuple, selectPinnedThresholds, selectStepRows, selectThresholds } from '../../rollouts/derive/rollup.sql.ts';
import { codeOf, PHASES } from '../../rollouts/codes.ts';
import { keepFigures, type MadeFigures, selectEnvironments, selectSteps, type StepRow } from './step-figures.sql.ts';

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

const nameOf = ({ lens, den }: Pick<FigureSet, 'lens' | 'den'>) => `${lens}/${den}`;
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
    const { pool } = this.database;
    const environments = byEnv || scope.env !== undefined ? await selectEnvironments(pool, scope.runSeq) : [];
    const wanted = scope.env === undefined ? environments : environments.filter(({ environment }) => environment === scope.env);
    if (scope.env !== undefined && wanted.length === 0)
      throw unknownEnvironment(
        scope.env,
        environments.flatMap(({ environment }) => environment ?? []),
      );
    const rows = await selectSteps(pool, {
      runSeq: scope.runSeq,
      envIds: byEnv || scope.env !== undefined ? wanted.map(({ id }) => id) : null,
      phase: scope.phase === undefined ? undefined : codeOf(PHASES, scope.phase)!,
      steps: scope.steps,
    });
    return { rows, names: new Map(wanted.map(({ id, environment }) => [id, environment])) };
  }

  /** Makes sure of these figures. Answers the rows that have them, and whether some are still left to make. */
  async withFigures(runSeq: number, rows: readonly StepRow[], set: FigureSet): Promise<{ rows: StepRow[]; incomplete: boolean }> {
    const lacks = (row: StepRow) => {
      const made = figuresOf(row, set);
      return made === null || set.keys.some((key) => !(key in made));
    };
    return this.#make(runSeq, rows, lacks, (row, tuples, successOf) => {
      const figures = lensFigures({ lens: set.lens, denominator: set.den, keys: set.keys }, tuples, successOf);
      row.figures.lenses = { ...row.figures.lenses, [nameOf(set)]: { ...row.figures.lenses?.[nameOf(set)], ...figures } };
      return { set: nameOf(set), lens: figures, histogram: null };
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
      const tuples = await selectStepRows(
        pool,
        batch.map(({ phase, step }) => ({ run_seq: runSeq, phase, step })),
      );
      const made = batch.map((row, position) => {
        const own = row.env_id === 0 ? tuples[position]! : tuples[position]!.filter((tuple) => tuple[1] === row.env_id);
        return { env_id: row.env_id, phase: row.phase, step: row.step, version: row.version, ...make(row, own, successOf) };
      });
      await keepFigures(pool, runSeq, made);
    }
    const missing = new Set(left.slice(at));
    return { rows: rows.filter((row) => !missing.has(row)), incomplete: missing.size > 0 };
  }
}

/** Null when they have not been made. */
export function figuresOf(row: StepRow, set: FigureSet): Record<string, StoredFigure> | null {
  const made = row.figures.lenses?.[nameOf(set)];
  if (set.lens === 'canonical' && set.den === 'scored') return { ...row.figures.canonical, ...made };
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
