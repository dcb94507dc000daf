import type { Clause, FieldClause, Query, RegexValue, TextValue } from './ast.ts';
import type { Compilation } from './compilation.ts';
import { matcherOf } from './evaluator.ts';
import { fieldSql } from './field-sql.ts';
import { type SearchedTypes, searchedTypes } from './message-types.ts';
import { compileRegexes, regexesOf, requiredLiteral } from './regex.ts';
import type { QueryRow } from './row.ts';
import type { QuerySchema, TextCondition } from './schema.ts';

export interface CompileOptions {
  /** Milliseconds since the epoch; the ages of `received` count back from it. */
  now: number;
  /** Number of the first placeholder, for statements that already use $1. Default 1. */
  firstParameter?: number;
}

export interface CompiledQuery {
  /** A condition over `rollouts r` with placeholders only; TRUE for the empty query. It does not restrict the organisation. */
  where: string;
  /** Values of the placeholders, in order. */
  values: unknown[];
  /** The phrases that are not negated, for highlighting and for hits per step. */
  text: TextCondition[];
  /** The conditions that SQL cannot decide; null when `where` decides everything. */
  postFilter: PostFilter | null;
}

export interface PostFilter {
  regexes: RegexFilter[];
  /** The clauses with a regex, and their `in:`. `accepts` checks only these and reads only their fields of the row. */
  query: Query;
  /** The time of `accepts`, milliseconds since the epoch. */
  now: number;
  /** Whether a row that passed `where` matches the query. Linear in the length of its texts. */
  accepts(row: QueryRow): boolean;
}

export interface RegexFilter {
  pattern: string;
  /** `i` or empty. */
  flags: string;
  /** The key, or `text` for messages. */
  field: FieldClause['key'] | 'text';
  /** Whether one text matches; RE2, linear time. */
  test(text: string): boolean;
}

/**
 * Compiles a query into a parameterised PostgreSQL condition for the rollouts that `matches` accepts. Regexes never reach the database,
 * whose engine can take exponential time: `where` passes every rollout that may match, and `postFilter` decides. Throws QueryError for
 * a regex that RE2 does not support.
 */
export function compileQuery(query: Query, schema: QuerySchema, options: CompileOptions): CompiledQuery {
  const postFilter = postFilterOf(query, options);
  const values: unknown[] = [];
  const compilation: Compilation = {
    schema,
    now: options.now,
    bind: (value) => `$${values.push(value) - 1 + (options.firstParameter ?? 1)}`,
    column: (name) => schema.fields[name],
    text: [],
  };
  const where = conjunctionSql(query, null, true, compilation);
  return { where, values, text: compilation.text, postFilter };
}

/** `positive` is false inside an odd number of negations. */
function conjunctionSql(query: Query, outer: SearchedTypes, positive: boolean, compilation: Compilation): string {
  const types = searchedTypes(query, outer);
  const parts = query.clauses.filter((clause) => !isInClause(clause)).map((clause) => clauseSql(clause, types, positive, compilation));
  return parts.length === 0 ? 'TRUE' : parts.join(' AND ');
}

const isInClause = (clause: Clause): boolean => clause.kind === 'field' && clause.key === 'in';

/** A negation is the complement also where a column is NULL, so it is IS NOT TRUE instead of NOT. */
function clauseSql(clause: Clause, types: SearchedTypes, positive: boolean, compilation: Compilation): string {
  const sql = plainSql(clause, types, clause.negated ? !positive : positive, compilation);
  return clause.negated ? `(${sql}) IS NOT TRUE` : `(${sql})`;
}

function plainSql(clause: Clause, types: SearchedTypes, positive: boolean, compilation: Compilation): string {
  switch (clause.kind) {
    case 'group':
      return clause.alternatives.map((alternative) => `(${conjunctionSql(alternative, types, positive, compilation)})`).join(' OR ');
    case 'text':
      return clause.value.kind === 'regex'
        ? textRegexSql(clause.value, types, positive, compilation)
        : phraseSql(clause.value, types, positive, compilation);
    case 'field':
      return fieldSql(clause, positive, compilation);
  }
}

function phraseSql(value: TextValue, types: SearchedTypes, positive: boolean, { schema, bind, text }: Compilation): string {
  const condition: TextCondition = { kind: 'phrase', text: value.text, ignoreCase: true, types };
  if (positive) text.push(condition);
  return schema.textExists(condition, bind);
}

/** Selects at least the matching rollouts. Inside a negation it selects none, so that the complement keeps every candidate. */
function textRegexSql(value: RegexValue, types: SearchedTypes, positive: boolean, { schema, bind }: Compilation): string {
  if (!positive) return 'FALSE';
  const literal = requiredLiteral(value);
  return literal === null ? 'TRUE' : schema.textExists({ kind: 'literal', text: literal, ignoreCase: value.ignoreCase, types }, bind);
}

function postFilterOf(query: Query, options: CompileOptions): PostFilter | null {
  const compiled = compileRegexes(query);
  if (compiled.size === 0) return null;
  const clauses = query.clauses.filter((clause) => isInClause(clause) || regexesOf(clause).length > 0);
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
    now: options.now,
    accepts: matcherOf(undecided, options),
  };
}

function fieldsOfRegexes(clause: Clause): [RegexValue, RegexFilter['field']][] {
  if (clause.kind === 'group') return clause.alternatives.flatMap((alternative) => alternative.clauses.flatMap(fieldsOfRegexes));
  const field = clause.kind === 'text' ? 'text' : clause.key;
  return regexesOf(clause).map((value) => [value, field]);
}
