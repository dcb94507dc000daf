import type { QueryKey } from './catalogue.ts';

/** The range of a node in the text of the query, in UTF-16 units. */
export interface Span {
  position: number;
  length: number;
}

/** A conjunction: every clause must hold. The empty query holds for every rollout. */
export interface Query extends Span {
  clauses: Clause[];
}

export type Clause = FieldClause | TextClause | GroupClause;

/** `key:value,value`: one of the values must hold. A negated clause is the exact complement: `-reward:0` holds for unscored rollouts. */
export interface FieldClause extends Span {
  kind: 'field';
  negated: boolean;
  key: QueryKey;
  values: Value[];
}

/** A phrase, or a regular expression, somewhere in the text of one message. */
export interface TextClause extends Span {
  kind: 'text';
  negated: boolean;
  value: TextValue | RegexValue;
}

/** `(a b OR c)`: one of the alternatives must hold. */
export interface GroupClause extends Span {
  kind: 'group';
  negated: boolean;
  alternatives: Query[];
}

export type Value = TextValue | RegexValue | NullValue | CompareValue | RangeValue;

/** A word or a quoted text. For enumerations it is a value of the catalogue, for ids and booleans the canonical text. */
export interface TextValue extends Span {
  kind: 'text';
  text: string;
}

/** RE2 syntax, unanchored. `pattern` is the text between the slashes; a slash in it is `\/`. */
export interface RegexValue extends Span {
  kind: 'regex';
  pattern: string;
  ignoreCase: boolean;
}

/** `key:null`: the value is not known. No other value matches an unknown one. */
export interface NullValue extends Span {
  kind: 'null';
}

export type CompareOperator = '=' | '<' | '<=' | '>' | '>=';

export interface CompareValue extends Span {
  kind: 'compare';
  operator: CompareOperator;
  operand: Operand;
}

/** Both ends are inclusive; null is open. */
export interface RangeValue extends Span {
  kind: 'range';
  low: Operand | null;
  high: Operand | null;
}

export type DurationUnit = 'ms' | 's' | 'm' | 'h' | 'd' | 'w';

/** A plain number; a duration (for `received`: an age); an ISO date or date-time, in UTC by default. */
export type Operand =
  | { kind: 'number'; value: number }
  | { kind: 'duration'; value: number; unit: DurationUnit }
  | { kind: 'date'; iso: string };
