import { Injectable } from '@nestjs/common';
import { PalestraError, PHASES, type RunTaskListQuery } from '@palestra/protocol';
import { decodeCursor, encodeCursor, INT32 } from '../../platform/http/cursor.ts';
import { Database } from '../../platform/database/database.ts';
import { codeOf } from '../../store/vocabulary-codes.ts';
import { presentGroup } from './run-groups.service.ts';
import { type GroupRecord, selectTaskGroups, selectTaskIds } from './run-groups.sql.ts';
import type { RunScope } from '../run-scope.ts';
import { taskRewards, taskStrip } from './task-strip.ts';

/** Maximum of points in a task's strip; of longer histories the last ones. */
const MAX_POINTS = 500;

/** Tasks of a run with their solve rates by step. */
@Injectable()
export class RunTasksService {
  constructor(private readonly database: Database) {}

  async list(run: RunScope, { phase, limit, cursor }: RunTaskListQuery) {
    const { pool } = this.database;
    const after = cursor === undefined ? 0 : Number(decodeCursor(cursor, INT32)[0]);
    const ids = await selectTaskIds(pool, run.seq, after, limit + 1);
    const shown = ids.slice(0, limit);
    const groups = await selectTaskGroups(pool, run.seq, shown, phaseCode(phase), MAX_POINTS);
    const byTask = new Map(shown.map((id) => [id, groups.filter(({ task_id }) => task_id === id)]));
    return {
      tasks: [...byTask.values()].filter((rows) => rows.length > 0).map(presentTask),
      next: ids.length > limit ? encodeCursor([String(shown.at(-1)!)]) : null,
    };
  }

  /** By id. Throws `task_not_found`. */
  async get(run: RunScope, id: string, { phase }: Pick<RunTaskListQuery, 'phase'>) {
    const isId = /^\d{1,10}$/.test(id) && Number(id) <= 2_147_483_647;
    const groups = isId ? await selectTaskGroups(this.database.pool, run.seq, [Number(id)], phaseCode(phase), MAX_POINTS) : [];
    if (groups.length === 0) throw new PalestraError('task_not_found');
    return { ...presentTask(groups), reward: taskRewards(groups), groups: groups.map(presentGroup) };
  }
}

const phaseCode = (phase: RunTaskListQuery['phase']): number | null => (phase === undefined ? null : codeOf(PHASES, phase));

function presentTask(groups: readonly GroupRecord[]) {
  const { task_id, task_key, task_index, split, environment } = groups[0]!;
  return { task: { id: String(task_id), key: task_key ?? '', index: task_index, split }, environment, ...taskStrip(groups) };
}
