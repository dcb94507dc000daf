import { groupBy } from '@palestra/metrics';
import { printText } from '@palestra/query';

/** Chosen rollouts: some rows by id, or all that matched a query when they were counted. */
export type Chosen =
  | { kind: 'rollouts'; ids: readonly string[] }
  | { kind: 'query'; q: string; count: number; isExact: boolean; asOf: string };

/** As in the API: ids of one request, and the length of a query. */
export const MOST_IDS = 1_000;
const MOST_QUERY_CHARS = 2_000;
/** Addresses of a comparison and of a shared selection. */
const MOST_SHARED_IDS = 50;
export const MOST_COMPARED = 4;

export const countOf = (chosen: Chosen): number => (chosen.kind === 'rollouts' ? chosen.ids.length : chosen.count);

/** Why an action is not possible, or null. */
export function compareProblem(chosen: Chosen): string | null {
  if (chosen.kind === 'query') return `Select 2 to ${MOST_COMPARED} rollouts one by one to compare them`;
  const { length } = chosen.ids;
  if (length < 2) return 'Select a second rollout to compare';
  return length > MOST_COMPARED ? `Select at most ${MOST_COMPARED} rollouts to compare, not ${length}` : null;
}
export const annotateProblem = (chosen: Chosen): string | null =>
  chosen.kind === 'rollouts'
    ? chosen.ids.length > MOST_IDS
      ? `Select at most ${MOST_IDS} rows, or all rollouts that match the query`
      : null
    : chosen.isExact
      ? null
      : 'The selection has too many rollouts to annotate. Add a clause to the query';

/** The selection as a query, for a link; null if it has too many ids for an address. */
export function queryOf(chosen: Chosen): string | null {
  if (chosen.kind === 'query') return chosen.q;
  return chosen.ids.length <= MOST_SHARED_IDS ? `id:${chosen.ids.join(',')}` : null;
}

/** Alternatives within the clauses of `scope`; null if the query would be too long. */
export function anyOf(scope: string, alternatives: readonly string[]): string | null {
  const [only] = alternatives;
  const any = alternatives.length === 1 ? only! : `(${alternatives.join(' OR ')})`;
  const q = [scope, any].filter(Boolean).join(' ');
  return q.length <= MOST_QUERY_CHARS ? q : null;
}

/** The rollouts of some groups. A key can occur at several steps and phases. */
export function groupsClause(scope: string, groups: readonly { key: string; step: number | null; phase: string }[]): string | null {
  const byPlace = groupBy(groups, ({ step, phase }) => `step:${step ?? 'null'}${phase === 'unknown' ? '' : ` phase:${phase}`}`);
  return anyOf(
    scope,
    [...byPlace].map(([place, members]) => `${place} group:${members.map(({ key }) => key).join(',')}`),
  );
}

export interface ChosenTask {
  task: { key: string; index: number | null; split: string | null };
  environment: string | null;
}

/** The rollouts of some tasks, each with its environment and split. */
export function tasksClause(scope: string, tasks: readonly ChosenTask[]): string | null {
  const place = ({ environment, task: { split, index } }: ChosenTask) =>
    index === null
      ? ''
      : [environment !== null && `env:${printText(environment)}`, split !== null && `split:${printText(split)}`].filter(Boolean).join(' ');
  const alternatives = [...groupBy(tasks, place)].map(([where, members]) => {
    const names = members.map(({ task }) => printText(task.index === null ? task.key : String(task.index)));
    return [where, `task:${names.join(',')}`].filter(Boolean).join(' ');
  });
  return anyOf(scope, alternatives);
}

/** The keys after a toggle of `key`; with `anchor` all rows from the anchor to it get the new state of `key`. */
export function toggled(chosen: ReadonlySet<string>, keys: readonly string[], key: string, anchor: string | null): ReadonlySet<string> {
  const next = new Set(chosen);
  const [from, to] = [anchor === null ? -1 : keys.indexOf(anchor), keys.indexOf(key)];
  if (from < 0 || to < 0) {
    if (!next.delete(key)) next.add(key);
    return next;
  }
  // The rows between get the state of the anchor, so that a second range can also take away.
  const adds = next.has(anchor!);
  for (const one of keys.slice(Math.min(from, to), Math.max(from, to) + 1)) {
    if (adds) next.add(one);
    else next.delete(one);
  }
  return next;
}
