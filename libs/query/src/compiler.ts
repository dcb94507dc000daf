import type { Clause, FieldClause, Query, RegexValue, TextValue } from './ast.ts';
import type { Compilation } from './compilation.ts';
import { matcherOf } from './evaluator.ts';
import { fieldSql } from './field-sql.ts';
import { type Places, placesOf } from './places.ts';
import { compileRegexes, regexesOf, requiredLiteral } from './regex.ts';
import type { QueryRow } from './row.ts';
import type { JoinName, QuerySchema, TextCondition } from './schema.ts';

export interface CompileOptions {
  /** Milliseconds since the epoch, from which the ages of `received` count. */
  now: number;
  /** Number of the first placeholder: 3 when the statement has $1 and $2 already. 1 unless told. */
  firstParameter?: number;
}

export interface CompiledQuery {
  /** A condition over `rollouts r` and `joins`, with placeholders only; TRUE for the empty query. It does not restrict the organisation. */
  where: string;
  /** The placeholders' values, in order. */
  values: unknown[];
  joins: Set<JoinName>;
  /** The phrases that a hit contains: for highlighting, and for hits per step. Negated ones are not among them. */
  text: TextCondition[];
  /** What SQL could not decide; null when `where` is the whole answer. */
  postFilter: PostFilter | null;
}

export interface PostFilter {
  regexes: RegexFilter[];
  /** The clauses that hold a regex (and their `in:`), which alone are checked by `accepts`; of the row only their fields are read. */
  query: Query;
  /** Whether a row that `where` let through belongs to the query. Linear in the length of its texts. */
  accepts(row: QueryRow): boolean;
}

export interface RegexFilter {
  pattern: string;
  /** `i` or nothing. */
  flags: string;
  /** The key, or `text` for messages. */
  field: FieldClause['key'] | 'text';
  /** Whether one text matches; RE2, linear time. */
  test(text: string): boolean;
}

/**
 * A query as a condition of parameterised PostgreSQL that holds for the same rollouts as `matches`. Regexes never reach the database, whose
 * engine can take exponential time: there `where` lets through all rollouts that may match, and `postFilter` decides. Throws QueryError
 * for a regex that is not one of RE2.
 */
export function compileQuery(query: Query, schema: QuerySchema, options: CompileOptions): CompiledQuery {
  const postFilter = postFilterOf(query, options);
  const values: unknown[] = [];
  const joins = new Set<JoinName>();
  const compilation: Compilation = {
    schema,
    now: options.now,
    bind: (value) => `$${values.push(value) - 1 + (options.firstParameter ?? 1)}`,
    column: (name) => {
      const { sql, join } = schema.fields[name];
      if (join !== undefined) joins.add(join);
      return sql;
    },
    text: [],
  };
  const where = conjunctionSql(query, null, true, compilation);
  return { where, values, joins, text: compilation.text, postFilter };
}

/** The JOIN clauses of a compiled query, to stand after `FROM rollouts r`. */
export function joinSql(joins: ReadonlySet<JoinName>, schema: QuerySchema): string {
  return [...joins].map((join) => schema.joins[join]).join('\n');
}

/** `positive` is false below an odd number of negations. */
function conjunctionSql(query: Query, outer: Places, positive: boolean, compilation: Compilation): string {
  const places = placesOf(query, outer);
  const parts = query.clauses.filter((clause) => !isPlace(clause)).map((clause) => clauseSql(clause, places, positive, compilation));
  return parts.length === 0 ? 'TRUE' : parts.join(' AND ');
}

const isPlace = (clause: Clause): boolean => clause.kind === 'field' && clause.key === 'in';

/** A negation is the complement, also where a column is null: IS NOT TRUE instead of NOT. AND and OR keep "null is not true". */
function clauseSql(clause: Clause, places: Places, positive: boolean, compilation: Compilation): string {
  const sql = plainSql(clause, places, clause.negated ? !positive : positive, compilation);
  return clause.negated ? `(${sql}) IS NOT TRUE` : `(${sql})`;
}

function plainSql(clause: Clause, places: Places, positive: boolean, compilation: Compilation): string {
  switch (clause.kind) {
    case 'group':
      return clause.alternatives.map((alternative) => `(${conjunctionSql(alternative, places, positive, compilation)})`).join(' OR ');
    case 'text':
      return clause.value.kind === 'regex'
        ? textRegexSql(clause.value, places, positive, compilation)
        : phraseSql(clause.value, places, positive, compilation);
    case 'field':
      return fieldSql(clause, positive, compilation);
  }
}

function phraseSql(value: TextValue, types: Places, positive: boolean, { schema, bind, text }: Compilation): string {
  const condition: TextCondition = { kind: 'phrase', text: value.text, ignoreCase: true, types };
  if (positive) text.push(condition);
  return schema.textExists(condition, bind);
}

/** At least the rollouts that match, or under a negation at most those: then nothing is known, and the complement is everything. */
function textRegexSql(value: RegexValue, types: Places, positive: boolean, { schema, bind }: Compilation): string {
  if (!positive) return 'FALSE';
  const literal = requiredLiteral(value);
  return literal === null ? 'TRUE' : schema.textExists({ kind: 'literal', text: literal, ignoreCase: value.ignoreCase, types }, bind);
}

function postFilterOf(query: Query, options: CompileOptions): PostFilter | null {
  const compiled = compileRegexes(query);
  if (compiled.size === 0) return null;
  const clauses = query.clauses.filter((clause) => isPlace(clause) || regexesOf(clause).length > 0);
  const undecided = { ...query, clauses };
  const fields = new Map(clauses.flatMap(fieldsOfRegexes));
  return {
    regexes: [...compiled].map(([value, test]) => ({
      pattern: value.pattern,
      flags: value.ignoreCase ? 'i' : '',
      field: fields.get(value)!,
      test,
    })),
    query: undecided,
    accepts: matcherOf(undecided, options),
  };
}

function fieldsOfRegexes(clause: Clause): [RegexValue, RegexFilter['field']][] {
  if (clause.kind === 'group') return clause.alternatives.flatMap((alternative) => alternative.clauses.flatMap(fieldsOfRegexes));
  const field = clause.kind === 'text' ? 'text' : clause.key;
  return regexesOf(clause).map((value) => [value, field]);
}
