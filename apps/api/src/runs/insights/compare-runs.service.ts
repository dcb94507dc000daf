import { Injectable } from '@nestjs/common';
import { setImmediate } from 'node:timers/promises';
import { formatReward } from '@palestra/kit/reward-text';
import {
  bootstrapOf,
  commonTasks,
  compare,
  type Comparison,
  estimateDifference,
  groupBy,
  holm,
  type Interval,
  mcnemar,
  type PairedTask,
  powerInWords,
  type RunCells,
} from '@palestra/metrics';
import { COMPARE_METRICS, type CompareMetric, type CompareQuery } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { Database } from '../../platform/database/database.ts';
import { Semaphore, TenantConcurrency } from '../../platform/tenant-concurrency.ts';
import { RunScopes } from '../run-scope.ts';
import { cellsOf } from './compare-metrics.ts';
import { selectTaskNames, selectTaskSums, type TaskSums } from './compare-runs.sql.ts';
import { compareScopeOf } from './compare-scope.ts';

/** Tasks of a run that a comparison reads. */
const MAX_TASKS = 5_000;
const MAX_FLIPS = 100;
const MAX_ENVIRONMENTS = 50;
/** Comparisons in progress. */
const LIMITS = { owner: 4, all: 16 };
/** Metrics whose interval is checked by a bootstrap. */
const BOOTSTRAPPED: readonly CompareMetric[] = ['reward_mean', 'success'];

/** Differences between runs and what they prove. Rollouts are summed by task in PostgreSQL; here are at most 5 000 tasks per run. */
@Injectable()
export class CompareRunsService {
  /** One pair at a time, so that many requests take no more of the event loop than one. */
  readonly #computing = new Semaphore(1);
  /** Those that wait for it hold the tasks of their runs. */
  readonly #limits = new TenantConcurrency('comparisons', LIMITS);

  constructor(
    private readonly database: Database,
    private readonly scopes: RunScopes,
  ) {}

  /** Throws `run_not_found` for a run that does not exist or is of another organisation, and `capacity_exhausted`. */
  compare(caller: Caller, query: CompareQuery) {
    return this.#limits.use(caller.orgId, () => this.#compare(caller, query));
  }

  async #compare(caller: Caller, query: CompareQuery) {
    const { pool } = this.database;
    const runs = await Promise.all(query.runs.map((run) => this.scopes.open(caller, run)));
    const scope = await compareScopeOf(pool, runs, query);
    const filter = { phase: scope.phaseCode, steps: scope.steps, env: query.env ?? null, den: query.den };
    // One more for the rollouts without a task, one more to see whether tasks are cut.
    const read = await Promise.all(runs.map(({ seq }) => selectTaskSums(pool, { ...filter, runSeq: seq, limit: MAX_TASKS + 2 })));
    const { sums, cut } = cutAlike(read);
    const cells = sums.map((tasks) => new Map(COMPARE_METRICS.map((metric) => [metric, cellsOf(metric, tasks)])));
    const pairs = [];
    for (const [at, run] of runs.entries())
      if (at > 0) pairs.push({ run: run.id, ...(await this.#computing.use(() => this.#pair(cells[0]!, cells[at]!))) });
    return {
      phase: scope.phase,
      den: query.den,
      steps: scope.described,
      runs: runs.map(({ id, name, pending }, at) => ({
        id,
        name,
        tasks: sums[at]!.filter(({ task_id, n }) => task_id !== null && n > 0).length,
        samples: sums[at]!.reduce((total, { n }) => total + n, 0),
        left_out: sums[at]!.reduce((total, { left_out }) => total + left_out, 0),
        steps: scope.known[at]!,
        pending,
      })),
      cut: cut ? MAX_TASKS : null,
      pairs,
    };
  }

  async #pair(first: ReadonlyMap<CompareMetric, RunCells>, other: ReadonlyMap<CompareMetric, RunCells>) {
    const metrics = [];
    for (const metric of COMPARE_METRICS) {
      const [a, b] = [first.get(metric)!, other.get(metric)!];
      // Others are served between the metrics, each of which takes some 20 ms.
      await setImmediate();
      const found = compare(a, b);
      if (!found) continue;
      const bootstrap = BOOTSTRAPPED.includes(metric) ? await finish(bootstrapOf(a, b, found.method)) : null;
      metrics.push(presentMetric(metric, found, bootstrap));
    }
    const common = commonTasks(first.get('success')!.tasks, other.get('success')!.tasks);
    return {
      common_tasks: common.length,
      metrics,
      solved: common.length === 0 ? null : await this.#solved(common),
      environments: byEnvironment(first.get('reward_mean')!, other.get('reward_mean')!),
    };
  }

  async #solved(common: readonly PairedTask[]) {
    const isSolved = ({ mean }: PairedTask['first']) => mean >= 0.5;
    const count = (a: boolean, b: boolean) => common.filter(({ first, other }) => isSolved(first) === a && isSolved(other) === b).length;
    const [lost, gained] = [count(true, false), count(false, true)];
    const flipped = common.filter(({ first, other }) => isSolved(first) !== isSolved(other));
    const change = ({ first, other }: PairedTask) => Math.abs(other.mean - first.mean);
    const shown = flipped.toSorted((a, b) => change(b) - change(a) || Number(a.task) - Number(b.task)).slice(0, MAX_FLIPS);
    const names = await selectTaskNames(
      this.database.pool,
      shown.map(({ task }) => Number(task)),
    );
    const side = ({ mean, count: samples }: PairedTask['first']) => ({ success: mean, samples });
    return {
      both: count(true, true),
      neither: count(false, false),
      lost,
      gained,
      ...mcnemar(lost, gained),
      flips: shown.flatMap(({ task, environment, first, other }) => {
        const name = names.get(Number(task));
        if (!name) return [];
        return [
          {
            task: { id: task, key: name.key, index: name.task_index, split: name.split },
            environment,
            first: side(first),
            other: side(other),
          },
        ];
      }),
    };
  }
}

/**
 * Leaves as many tasks of each run as a comparison reads. All runs are cut at the same place of the order by hash, so that the tasks that they
 * share stay in all of them.
 */
function cutAlike(read: readonly TaskSums[][]): { sums: TaskSums[][]; cut: boolean } {
  const named = (tasks: readonly TaskSums[]) => tasks.filter(({ task_id }) => task_id !== null);
  const ends = read.flatMap((tasks) => named(tasks)[MAX_TASKS] ?? []);
  if (ends.length === 0) return { sums: [...read], cut: false };
  const end = ends.reduce((least, one) => (isBefore(one, least) ? one : least));
  return { sums: read.map((tasks) => tasks.filter((task) => task.task_id === null || isBefore(task, end))), cut: true };
}

const isBefore = (a: TaskSums, b: TaskSums): boolean => a.place < b.place || (a.place === b.place && a.task_id! < b.task_id!);

/** Runs slices of work, and serves others between them. */
async function finish<T>(work: Generator<void, T>): Promise<T> {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
    await setImmediate();
  }
}

function presentMetric(metric: CompareMetric, found: Comparison, bootstrap: Interval | null) {
  const { method, first, other, difference, low, high, p, unpaired, power } = found;
  return {
    metric,
    method,
    first,
    other,
    difference,
    low,
    high,
    p,
    bootstrap,
    unpaired,
    power: power && {
      detectable: power.detectable,
      resolved: power.resolved,
      needed: power.needed,
      samples_per_task_needed: power.samplesNeeded,
    },
    power_words: powerInWords(found, formatReward),
  };
}

/** Mean reward by environment, corrected for their number; empty for runs of one environment. */
function byEnvironment(first: RunCells, other: RunCells) {
  const split = ({ tasks }: RunCells) => groupBy([...tasks], ([, { environment }]) => environment ?? '');
  const [a, b] = [split(first), split(other)];
  const names = [...a.keys()]
    .filter((name) => b.has(name))
    .toSorted()
    .slice(0, MAX_ENVIRONMENTS);
  if (new Set([...a.keys(), ...b.keys()]).size < 2) return [];
  const rows = names.flatMap((name) => {
    const found = estimateDifference({ tasks: new Map(a.get(name)), rollouts: null }, { tasks: new Map(b.get(name)), rollouts: null });
    return found ? [{ name, found }] : [];
  });
  const corrected = holm(rows.map(({ found }) => found.p));
  return rows.map(({ name, found: { method, first: side, difference, low, high, p } }, at) => ({
    environment: name === '' ? null : name,
    method,
    tasks: side.tasks,
    difference,
    low,
    high,
    p,
    p_holm: corrected[at] ?? null,
  }));
}
