import {
  type Clause,
  type FieldClause,
  type Operand,
  parseQuery,
  printQuery,
  type Query,
  type QueryKey,
  QueryError,
  type Value,
} from '@palestra/query';
import { filterClauses } from '../../run/filter.ts';
import type { RunFilter } from '../../data/run-queries.ts';

/** How facets read and edit the text of a query. They use top-level clauses only, not those in parentheses. */

/** The query of the page with the filter of the run. Clauses are joined by a space, which means AND. */
export const effectiveQuery = (filter: RunFilter, q: string): string => [filterClauses(filter), q].filter((part) => part !== '').join(' ');

export function readQuery(text: string): Query | QueryError {
  try {
    return parseQuery(text);
  } catch (error) {
    if (error instanceof QueryError) return error;
    throw error;
  }
}

const nowhere = { position: 0, length: 0 };
const isOf = (key: QueryKey, clause: Clause): clause is FieldClause => clause.kind === 'field' && clause.key === key;

/** The name of a value in a facet; undefined for ranges, comparisons and regexes. */
function nameOf(value: Value): string | undefined {
  if (value.kind === 'text') return value.text;
  if (value.kind === 'null') return 'null';
  if (value.kind === 'compare' && value.operator === '=' && value.operand.kind === 'number') return String(value.operand.value);
  return undefined;
}

export type Choice = 'in' | 'out';

/** The values that the query includes (`in`) or excludes (`out`) by name. */
export function choicesOf(query: Query, key: QueryKey): Map<string, Choice> {
  const found = new Map<string, Choice>();
  for (const clause of query.clauses) {
    if (!isOf(key, clause)) continue;
    for (const value of clause.values) {
      const name = nameOf(value);
      if (name !== undefined) found.set(name, clause.negated ? 'out' : 'in');
    }
  }
  return found;
}

/** The query with a value included, excluded or removed (null). Other values of the key stay. */
export function choose(query: Query, key: QueryKey, name: string, choice: Choice | null): string {
  const clauses = query.clauses.flatMap((clause): Clause[] => {
    if (!isOf(key, clause)) return [clause];
    const values = clause.values.filter((value) => nameOf(value) !== name);
    return values.length === 0 ? [] : [{ ...clause, values }];
  });
  if (choice !== null) add(clauses, key, { kind: name === 'null' ? 'null' : 'text', text: name, ...nowhere } as Value, choice === 'out');
  return print(clauses);
}

/** Adds a value to the clause of its key: a comma means OR, and a negated clause excludes all of its values. */
function add(clauses: Clause[], key: QueryKey, value: Value, negated: boolean): void {
  const at = clauses.findIndex(
    (clause) => isOf(key, clause) && clause.negated === negated && clause.values.every((one) => nameOf(one) !== undefined),
  );
  const clause = clauses[at];
  if (clause?.kind === 'field') clauses[at] = { ...clause, values: [...clause.values, value] };
  else clauses.push({ kind: 'field', negated, key, values: [value], ...nowhere });
}

const print = (clauses: Clause[]): string => printQuery({ clauses, ...nowhere });

/** The query without the included values of a key. A facet counts this query, so that another value can be chosen. */
export function withoutKey(query: Query, key: QueryKey): string {
  return print(query.clauses.filter((clause) => !isOf(key, clause) || clause.negated));
}

/** Bounds of a key in the query. `below` is exclusive, like `<`. */
export interface Bounds {
  from?: number;
  to?: number;
  below?: number;
}
const numberOf = (operand: Operand | null): number | undefined => (operand?.kind === 'number' ? operand.value : undefined);

export function boundsOf(query: Query, key: QueryKey): Bounds {
  const bounds: Bounds = {};
  for (const clause of query.clauses) {
    if (!isOf(key, clause) || clause.negated || clause.values.length !== 1) continue;
    const value = clause.values[0]!;
    if (value.kind === 'range') set(bounds, { from: numberOf(value.low), to: numberOf(value.high) });
    else if (value.kind === 'compare') {
      const number = numberOf(value.operand);
      if (value.operator === '=') set(bounds, { from: number, to: number });
      else if (value.operator === '>=') set(bounds, { from: number });
      else if (value.operator === '<=') set(bounds, { to: number });
      else if (value.operator === '<') set(bounds, { below: number });
    }
  }
  return bounds;
}
function set(bounds: Bounds, change: { [Name in keyof Bounds]: number | undefined }): void {
  for (const name of ['from', 'to', 'below'] as const) if (change[name] !== undefined) bounds[name] = change[name];
}

/** The query with these bounds instead of the included values of the key; empty bounds remove them. */
export function setBounds(query: Query, key: QueryKey, { from, to, below }: Bounds): string {
  const rest = withoutKey(query, key);
  const range = from === undefined && to === undefined ? [] : from === to ? [`${key}:${from}`] : [`${key}:${from ?? ''}..${to ?? ''}`];
  const half = [from === undefined ? '' : `${key}:>=${from}`, `${key}:<${below}`];
  return [rest, ...(below === undefined ? range : half)].filter((part) => part !== '').join(' ');
}

/** The query with a clause for the text that was searched for. */
export function withTextClause(q: string, find: string, mode: 'text' | 'regex'): string {
  const pattern = find.replaceAll(/\\[^]|\//g, (part) => (part === '/' ? '\\/' : part));
  const value = mode === 'regex' ? ({ kind: 'regex', pattern, ignoreCase: false } as const) : ({ kind: 'text', text: find } as const);
  const clause = print([{ kind: 'text', negated: false, value: { ...value, ...nowhere }, ...nowhere }]);
  return [q, clause].filter((part) => part !== '').join(' ');
}
