import { Injectable } from '@nestjs/common';
import { studentInterval } from '@palestra/metrics';
import { type CompareTasksQuery, PalestraError } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { decodeCursor, encodeCursor, FLOAT64, INT32 } from '../../platform/http/cursor.ts';
import { Database } from '../../platform/database/database.ts';
import { RunScopes } from '../run-scope.ts';
import { compareScopeOf } from './compare-scope.ts';
import { type ComparedTask, selectComparedTasks } from './compare-tasks.sql.ts';

/** Mean rewards that differ by less count as equal. */
const EQUAL = 1e-9;

/** Compares runs on the tasks that all of them scored. The differences are paired by task, because tasks differ more than policies do. */
@Injectable()
export class CompareTasksService {
  constructor(
    private readonly database: Database,
    private readonly scopes: RunScopes,
  ) {}

  /** Throws `run_not_found` for a run that does not exist or is of another organisation, `invalid_cursor`. */
  async list(caller: Caller, query: CompareTasksQuery) {
    const runs = await Promise.all(query.runs.map((run) => this.scopes.open(caller, run)));
    if (query.against >= runs.length)
      throw new PalestraError('invalid_request', { detail: `There is no run ${query.against} beside the first.` });
    const scope = await compareScopeOf(this.database.pool, runs, query);
    const { limit } = query;
    const after = query.cursor === undefined ? undefined : keysetOf(query.cursor);
    const found = await selectComparedTasks(this.database.pool, {
      runSeqs: runs.map(({ seq }) => seq),
      phase: scope.phaseCode,
      env: query.env ?? null,
      den: query.den,
      steps: scope.steps,
      against: query.against,
      sort: query.sort,
      order: query.order,
      limit: limit + 1,
      ...(after && { after }),
    });
    const rows = found.tasks ?? [];
    const shown = rows.slice(0, limit);
    const last = shown.at(-1);
    const deltasOf = (at: number) => found.deltas?.find((one) => one.at === at)?.values ?? [];
    return {
      phase: scope.phase,
      den: query.den,
      steps: scope.described,
      runs: runs.map(({ id, name }, i) => ({ id, name, tasks: found.counted?.find(({ at }) => at === i + 1)?.tasks ?? 0 })),
      common: deltasOf(2).length,
      pairs: runs.slice(1).map(({ id }, i) => ({ run: id, ...pairOf(deltasOf(i + 2)) })),
      tasks: shown.map(presentTask),
      next: rows.length > limit && last ? encodeCursor([last.sort_value, String(last.task_id)]) : null,
    };
  }
}

function keysetOf(cursor: string) {
  const [value, taskId] = decodeCursor(cursor, FLOAT64, INT32) as [string, string];
  return { value, taskId };
}

function pairOf(deltas: readonly number[]) {
  const interval = studentInterval(deltas);
  const count = (of: (delta: number) => boolean) => deltas.filter(of).length;
  return {
    mean: deltas.length === 0 ? null : deltas.reduce((sum, delta) => sum + delta, 0) / deltas.length,
    low: interval?.low ?? null,
    high: interval?.high ?? null,
    better: count((delta) => delta > EQUAL),
    worse: count((delta) => delta < -EQUAL),
    equal: count((delta) => Math.abs(delta) <= EQUAL),
  };
}

const presentTask = ({ task_id, key, task_index, split, environment, means, scored, successes }: ComparedTask) => ({
  task: { id: String(task_id), key, index: task_index, split },
  environment,
  runs: means.map((mean, i) => ({ mean, scored: scored[i]!, successes: successes[i]! })),
});
