import { classOfFingerprint, type ProvenanceField, TRUNCATED_STOPS } from '@palestra/protocol';
import type { Clause, CompareValue, FieldClause, Query, RangeValue, RegexValue, TextValue, Value } from './ast.ts';
import { type HasValue, type IsValue, type RolloutFlag } from './catalogue.ts';
import { type SearchedTypes, searchedTypes } from './message-types.ts';
import { compileRegexes } from './regex.ts';
import type { QueryGroup, QueryRow } from './row.ts';
import { searchWords } from './search-words.ts';
import { durationMs, windowOf } from './time-window.ts';

export interface EvaluationOptions {
  /** Milliseconds since the epoch; the ages of `received` count back from it. */
  now: number;
}

interface Context {
  now: number;
  regexes: Map<RegexValue, (text: string) => boolean>;
}

/** Whether a rollout matches a query. This defines the language; `compileQuery` reproduces it in SQL. */
export function matches(query: Query, row: QueryRow, options: EvaluationOptions): boolean {
  return matcherOf(query, options)(row);
}

/** `matches` for many rows; compiles regexes once. Throws QueryError for a regex that RE2 does not support. */
export function matcherOf(query: Query, options: EvaluationOptions): (row: QueryRow) => boolean {
  const context = { now: options.now, regexes: compileRegexes(query) };
  return (row) => holds(query, row, null, context);
}

/** Whether the query reads messages of the rollout, which its row does not have. */
export function needsMessages(query: Query): boolean {
  return query.clauses.some((clause) => {
    if (clause.kind === 'group') return clause.alternatives.some(needsMessages);
    return clause.kind === 'text' || clause.key === 'tool' || clause.key === 'tool.error';
  });
}

/** Whether the query reads message texts. Tool calls are also stored outside of messages. */
export function needsTexts(query: Query): boolean {
  return query.clauses.some((clause) => (clause.kind === 'group' ? clause.alternatives.some(needsTexts) : clause.kind === 'text'));
}

function holds(query: Query, row: QueryRow, outer: SearchedTypes, context: Context): boolean {
  const types = searchedTypes(query, outer);
  return query.clauses.every((clause) => isInClause(clause) || clauseHolds(clause, row, types, context) !== clause.negated);
}

const isInClause = (clause: Clause): boolean => clause.kind === 'field' && clause.key === 'in';

function clauseHolds(clause: Clause, row: QueryRow, types: SearchedTypes, context: Context): boolean {
  switch (clause.kind) {
    case 'group':
      return clause.alternatives.some((alternative) => holds(alternative, row, types, context));
    case 'text':
      return textHolds(clause.value, row, types, context);
    case 'field':
      return clause.values.some((value) => fieldHolds(clause, value, row, context));
  }
}

function textHolds(value: TextValue | RegexValue, row: QueryRow, types: SearchedTypes, context: Context): boolean {
  const found = value.kind === 'regex' ? context.regexes.get(value)! : phraseFinder(value.text);
  return row.messages.some(({ type, content }) => content !== null && (types === null || types.includes(type)) && found(content));
}

/** Whether the text has the words of the phrase in this order, ignoring case. */
function phraseFinder(phrase: string): (content: string) => boolean {
  const wanted = searchWords(phrase);
  return (content) => {
    if (wanted.length === 0) return false;
    const words = searchWords(content);
    return words.some((_, start) => wanted.every((word, offset) => words[start + offset] === word));
  };
}

function fieldHolds(clause: FieldClause, value: Value, row: QueryRow, context: Context): boolean {
  if (clause.key.startsWith('prov.')) return (row.prov[clause.key.slice(5) as ProvenanceField] ?? 'unknown') === textOf(value);
  switch (clause.key) {
    case 'tag':
      return row.tags.some((tag) => equal(tag, value, context));
    case 'verdict':
    case 'author': {
      const key = clause.key;
      return row.annotations.some((annotation) => equal(annotation[key], value, context));
    }
    case 'note':
      return row.annotations.some(({ note }) => note !== null && contains(note, value, context));
    case 'tool':
      return row.messages.some(({ type, name }) => type === 'tool_call' && equal(name, value, context));
    case 'tool.error':
      return row.messages.some(({ failed, name }) => failed && equal(name, value, context));
    case 'run':
      return equal(row.runName, value, context) || (value.kind === 'text' && value.text.toLowerCase() === row.runId);
    case 'task':
      return equal(row.taskKey, value, context) || (row.taskIndex !== null && textOf(value) === String(row.taskIndex));
    case 'is':
      return isHolds(textOf(value) as IsValue, row);
    case 'has':
      return hasHolds(textOf(value) as HasValue, row);
    case 'failure':
      return equal(row.cause, value, context) || (row.cause !== null && textOf(value) === classOfFingerprint(row.cause));
    case 'received':
      return value.kind === 'compare' || value.kind === 'range' ? inWindow(row.receivedAt, value, context.now) : false;
    default:
      return scalarHolds(scalarOf(clause.key, row), value, context);
  }
}

/** The value of a key that is one column of the row. */
function scalarOf(key: FieldClause['key'], row: QueryRow): string | number | null {
  switch (key) {
    case 'group':
      return row.groupKey;
    case 'env.version':
      return row.envVersion;
    case 'policy_step':
      return row.policyStep;
    case 'tok':
      return row.tokens;
    case 'dur':
      return row.durationMs;
    case 'lat':
      return row.latencyMs;
    case 'group.n':
      return row.group?.n ?? null;
    case 'group.mean':
      return row.group === null ? null : meanOf(row.group);
    case 'group.std':
      return row.group === null ? null : stdOf(row.group);
    case 'group.pass':
      return row.group === null || row.group.scored === 0 ? null : row.group.successes / row.group.scored;
    case 'group.complete':
      return row.group === null || row.group.nExpected === null ? null : String(row.group.n >= row.group.nExpected);
    default:
      return row[
        key as
          | 'id'
          | 'name'
          | 'env'
          | 'split'
          | 'phase'
          | 'sample'
          | 'model'
          | 'step'
          | 'reward'
          | 'turns'
          | 'calls'
          | 'msgs'
          | 'bytes'
          | 'stop'
          | 'state'
      ];
  }
}

function scalarHolds(actual: string | number | null, value: Value, context: Context): boolean {
  if (value.kind === 'compare' || value.kind === 'range') return typeof actual === 'number' && compares(actual, value);
  return equal(typeof actual === 'number' ? String(actual) : actual, value, context);
}

function equal(actual: string | null, value: Value, context: Context): boolean {
  if (value.kind === 'null') return actual === null;
  if (actual === null) return false;
  return value.kind === 'regex' ? context.regexes.get(value)!(actual) : actual === textOf(value);
}

function contains(actual: string, value: Value, context: Context): boolean {
  if (value.kind === 'regex') return context.regexes.get(value)!(actual);
  return value.kind === 'text' && actual.toLowerCase().includes(value.text.toLowerCase());
}

function compares(actual: number, value: CompareValue | RangeValue): boolean {
  if (value.kind === 'range')
    return (value.low === null || actual >= durationMs(value.low)) && (value.high === null || actual <= durationMs(value.high));
  const operand = durationMs(value.operand);
  switch (value.operator) {
    case '=':
      return actual === operand;
    case '<':
      return actual < operand;
    case '<=':
      return actual <= operand;
    case '>':
      return actual > operand;
    case '>=':
      return actual >= operand;
  }
}

function inWindow(at: number, value: CompareValue | RangeValue, now: number): boolean {
  const { from, to } = windowOf(value, now);
  return (from === undefined || at >= from) && (to === undefined || at < to);
}

function isHolds(property: IsValue, row: QueryRow): boolean {
  switch (property) {
    case 'finished':
      return row.stop === 'finished';
    case 'truncated':
      return TRUNCATED_STOPS.includes(row.stop);
    case 'scored':
      return row.reward !== null;
    case 'unscored':
      return row.reward === null;
    case 'best':
      return row.reward !== null && row.reward === row.group?.max;
    case 'worst':
      return row.reward !== null && row.reward === row.group?.min;
    case 'live':
      return row.state === 'live';
    case 'eval':
      return row.phase === 'eval';
  }
}

function hasHolds(content: HasValue, row: QueryRow): boolean {
  switch (content) {
    case 'error':
      return row.callErrors > 0;
    case 'gap':
      return row.gaps > 0;
    case 'note':
      return row.annotations.some(({ note }) => note !== null && note !== '');
    case 'telemetry':
      return (row.prov.telemetry ?? 'unknown') !== 'unknown';
    default:
      return row.flags.includes(content satisfies RolloutFlag);
  }
}

function meanOf({ sum, scored }: QueryGroup): number | null {
  return scored === 0 ? null : sum / scored;
}

function stdOf({ sum, sumsq, scored, min, max }: QueryGroup): number | null {
  if (scored < 2) return null;
  if (min !== null && max !== null && max - min <= 1e-6) return 0;
  return Math.sqrt(Math.max((sumsq - (sum * sum) / scored) / (scored - 1), 0));
}

const textOf = (value: Value): string | null => (value.kind === 'text' ? value.text : null);
