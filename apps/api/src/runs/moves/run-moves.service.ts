import { Injectable } from '@nestjs/common';
import { findMoves, type StepMove, type StepRewards } from '@palestra/metrics';
import { type MoveCause, PalestraError, PHASES, type RunMove, type RunMoves, type RunMovesQuery } from '@palestra/protocol';
import { LRUCache } from 'lru-cache';
import { Database } from '../../platform/database/database.ts';
import { Semaphore, TenantConcurrency } from '../../platform/tenant-concurrency.ts';
import { selectEnvironments } from '../../store/figures/step-figures.sql.ts';
import { unknownEnvironment } from '../../store/figures/step-figures.service.ts';
import { wordOf } from '../../store/vocabulary-codes.ts';
import { mainPhase } from '../curves/main-phase.ts';
import type { RunScope } from '../run-scope.ts';
import { moveInWords } from './cause-words.ts';
import { MoveCauses } from './move-causes.service.ts';
import { type GroupTotals, type MoveScope, selectGroupTotals, selectStepTotals, type StepTotals } from './run-moves.sql.ts';

/** Moves of an answer that name their cause; the newest. */
const MAX_EXPLAINED = 20;
const MAX_CACHED_RUNS = 200;
const MAX_CACHED_MOVES = 2_000;
/** Answers in progress: each explains up to 20 moves. */
const LIMITS = { owner: 4, all: 16 };

interface Found {
  scope: MoveScope;
  steps: number;
  moves: StepMove[];
  /** Of the figures of a step. */
  versions: ReadonlyMap<number, string>;
}
interface Explained {
  causes: MoveCause[];
  cut: boolean;
}

/** Finds the steps at which the mean reward of a run moved, and what else changed there (docs/reference/metrics.md#moves). */
@Injectable()
export class RunMovesService {
  /** Sums of steps by the version of their figures: of a live run only the changed steps are read again. */
  readonly #sums = new LRUCache<string, Map<number, { version: string; sums: StepRewards }>>({ max: MAX_CACHED_RUNS });
  readonly #causes = new LRUCache<string, Promise<Explained>>({ max: MAX_CACHED_MOVES });
  /** One explanation reads up to 30 000 rollouts, and the messages of 400. */
  readonly #reading = new Semaphore(2);
  readonly #limits = new TenantConcurrency('explanations of moves', LIMITS);

  constructor(
    private readonly database: Database,
    private readonly causes: MoveCauses,
  ) {}

  /** Throws `capacity_exhausted`, and 422 for an environment that the run does not have. */
  moves(run: RunScope, query: RunMovesQuery): Promise<RunMoves> {
    return this.#limits.use(run.orgId, () => this.#moves(run, query));
  }

  async #moves(run: RunScope, { env, phase, step }: RunMovesQuery): Promise<RunMoves> {
    const envIds = env === undefined ? null : await this.#environment(run.seq, env);
    const { phase: word, found } = await this.#find(run.seq, envIds, phase);
    if (!found) return { phase: word, steps: 0, moves: [] };
    const shown = found.moves.filter((move) => (step === undefined ? move.moved : move.step === step));
    const explained = new Set(shown.slice(-MAX_EXPLAINED));
    const moves: RunMove[] = [];
    for (const move of shown) {
      const { causes, cut } = explained.has(move) ? await this.#explain(found, move) : { causes: [], cut: false };
      moves.push(presentMove(move, step === undefined ? causes.slice(0, 1).filter(({ likely }) => likely) : causes, cut));
    }
    return { phase: word, steps: found.moves.length, moves };
  }

  /** The `most` largest falls at these steps of a phase, ascending, each with its likely first cause. */
  async falls(
    runSeq: number,
    { phase, envIds, steps }: { phase: number; envIds: number[] | null; steps: ReadonlySet<number> },
    most: number,
  ): Promise<RunMove[]> {
    const { found } = await this.#find(runSeq, envIds, wordOf(PHASES, phase) ?? undefined);
    if (!found) return [];
    const falls = found.moves
      .filter(({ step, moved, estimate }) => moved && estimate.difference < 0 && steps.has(step))
      .toSorted((a, b) => a.estimate.difference - b.estimate.difference)
      .slice(0, most)
      .toSorted((a, b) => a.step - b.step);
    const moves: RunMove[] = [];
    for (const move of falls) {
      const { causes, cut } = await this.#explain(found, move).catch(withoutCauses);
      moves.push(
        presentMove(
          move,
          causes.slice(0, 1).filter(({ likely }) => likely),
          cut,
        ),
      );
    }
    return moves;
  }

  async #environment(runSeq: number, env: string): Promise<number[]> {
    const known = await selectEnvironments(this.database.pool, runSeq);
    const wanted = known.filter(({ environment }) => environment === env);
    if (wanted.length === 0)
      throw unknownEnvironment(
        env,
        known.flatMap(({ environment }) => environment ?? []),
      );
    return wanted.map(({ id }) => id);
  }

  async #find(
    runSeq: number,
    envIds: number[] | null,
    requested: RunMovesQuery['phase'],
  ): Promise<{ phase: RunMoves['phase']; found: Found | null }> {
    const totals = await selectStepTotals(this.database.pool, { runSeq, envIds });
    const { phase, rows } = mainPhase(totals, requested);
    const first = rows[0];
    if (!first) return { phase, found: null };
    const scope = { runSeq, envIds, phase: first.phase };
    const sums = await this.#sumsOf(scope, rows);
    const moves = findMoves(rows.map(({ step }) => sums.get(step)!.sums));
    return { phase, found: { scope, steps: rows.length, moves, versions: new Map(rows.map(({ step, version }) => [step, version])) } };
  }

  async #sumsOf(scope: MoveScope, rows: readonly StepTotals[]) {
    const key = JSON.stringify(scope);
    const known = this.#sums.get(key);
    const changed = rows.filter(({ step, version }) => known?.get(step)?.version !== version);
    const groups =
      changed.length === 0
        ? new Map<number, GroupTotals>()
        : await selectGroupTotals(
            this.database.pool,
            scope,
            changed.map(({ step }) => step),
          );
    const sums = new Map(
      rows.map((row) => {
        const before = known?.get(row.step);
        const isSame = before?.version === row.version;
        return [row.step, isSame ? before : { version: row.version, sums: withoutGroups(row, groups.get(row.step)) }];
      }),
    );
    this.#sums.set(key, sums);
    return sums;
  }

  #explain({ scope, versions }: Found, move: StepMove): Promise<Explained> {
    const key = JSON.stringify([scope, move.step, move.baseline.map((step) => versions.get(step)), versions.get(move.step)]);
    const cached = this.#causes.get(key);
    if (cached) return cached;
    const explained = this.#reading.use(() => this.causes.of(scope, move));
    this.#causes.set(key, explained);
    explained.catch(() => this.#causes.delete(key));
    return explained;
  }
}

/** An advisory names no cause while too many checks run. */
function withoutCauses(error: unknown): Explained {
  if (error instanceof PalestraError && error.code === 'capacity_exhausted') return { causes: [], cut: false };
  throw error;
}

/** The sums of a step: its groups, and each rollout without a group as one. */
function withoutGroups({ step, parts }: StepTotals, groups: GroupTotals | undefined): StepRewards {
  const all = { count: 0, sum: 0, squares: 0 };
  for (const { n, mean, std } of parts) {
    if (n === 0 || mean === null) continue;
    all.count += n;
    all.sum += n * mean;
    all.squares += (n - 1) * (std ?? 0) ** 2 + n * mean ** 2;
  }
  const alone = all.count - (groups?.rollouts ?? 0);
  if (!groups) return { step, groups: alone, rollouts: alone, sum: all.sum, squares: all.squares };
  if (alone <= 0) return { step, groups: groups.groups, rollouts: groups.rollouts, sum: groups.sum, squares: groups.squares };
  return {
    step,
    groups: groups.groups + alone,
    rollouts: all.count,
    sum: all.sum,
    squares: groups.squares + Math.max(0, all.squares - groups.reward_squares),
  };
}

function presentMove(move: StepMove, causes: MoveCause[], cut: boolean): RunMove {
  const { step, baseline, now, before, estimate, corrected, moved } = move;
  return {
    step,
    baseline: { from: baseline[0]!, to: baseline.at(-1)!, steps: baseline.length },
    now,
    before,
    difference: estimate.difference,
    low: estimate.low,
    high: estimate.high,
    p: corrected,
    moved,
    text: moveInWords(move),
    causes,
    cut,
  };
}
