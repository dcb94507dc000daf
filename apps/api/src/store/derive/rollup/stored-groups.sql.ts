import type pg from 'pg';
import { copyOut } from '../../../platform/database/copy-out.ts';
import { type GroupRow, stepArrays, type StepKey } from './rollup.sql.ts';

/** `rollout_groups.facts` (migration 0018): the columns of a group in the order of `isSame`, its key before them; where a value is not known, what cannot occur. */
const GROUP_BYTES = 68;
const NONE = Buffer.alloc(0);

/** Groups of each step as they stand in the table, packed. Plan: per step an Index Scan using rollout_groups_step_idx. */
export async function selectStoredGroups(client: Pick<pg.ClientBase, 'query'>, steps: readonly StepKey[]): Promise<Buffer[]> {
  const rows = await copyOut(
    client,
    `SELECT (SELECT string_agg(facts, ''::bytea) FROM rollout_groups WHERE run_seq = s.run_seq AND step = s.step AND phase = s.phase) AS groups
     FROM unnest(${stepArrays(steps)}) WITH ORDINALITY AS s(run_seq, phase, step, position) ORDER BY s.position`,
  );
  return rows.map(([groups]) => groups ?? NONE);
}

/** What is to be written of a step's groups. */
export interface GroupChanges {
  changed: GroupRow[];
  /** Keys of groups that the step has no more. */
  gone: string[];
}

/** Between the groups of a step as they stand and as they should. */
export function groupChanges(stored: Buffer, groups: readonly GroupRow[]): GroupChanges {
  const view = new DataView(stored.buffer, stored.byteOffset, stored.length);
  const places = new Map<string, number>();
  for (let at = 0; at < stored.length; at += GROUP_BYTES) places.set(String(view.getBigInt64(at)), at);
  const changed = groups.filter((group) => {
    const at = places.get(group.group_key);
    places.delete(group.group_key);
    return at === undefined || !isSame(view, at + 8, group);
  });
  return { changed, gone: [...places.keys()] };
}

function isSame(view: DataView, from: number, group: GroupRow): boolean {
  return (
    view.getInt32(from) === group.env_id &&
    view.getInt32(from + 4) === (group.task_id ?? -1) &&
    view.getInt32(from + 8) === group.n &&
    view.getInt32(from + 12) === (group.n_expected ?? -1) &&
    view.getInt32(from + 16) === group.scored &&
    view.getInt32(from + 20) === group.errors &&
    view.getInt32(from + 24) === group.successes &&
    view.getFloat64(from + 28) === group.sum &&
    view.getFloat64(from + 36) === group.sum_squares &&
    isSameEnd(view.getFloat64(from + 44), group.min) &&
    isSameEnd(view.getFloat64(from + 52), group.max)
  );
}

const isSameEnd = (stored: number, made: number | null): boolean => (made === null ? Number.isNaN(stored) : stored === made);
