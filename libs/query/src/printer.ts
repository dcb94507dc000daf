import type { Clause, Operand, Query, RegexValue, Value } from './ast.ts';
import { findKey } from './catalogue.ts';

/** Texts that need no quotes, because neither the scanner nor a kind of value reads them differently. */
const bareText = /^[\p{L}\p{N}_][\p{L}\p{N}_.-]*$/u;
const bareValue = /^[\p{L}\p{N}_][\p{L}\p{N}_./@:+-]*$/u;

/**
 * The canonical text of a query: one space between clauses, the written order, quotes only where needed, no `=`.
 * `parseQuery(printQuery(query))` equals `query` except for positions.
 */
export function printQuery(query: Query): string {
  return query.clauses.map(printClause).join(' ');
}

function printClause(clause: Clause): string {
  const sign = clause.negated ? '-' : '';
  switch (clause.kind) {
    case 'field':
      return `${sign}${clause.key}:${clause.values.map((value) => printValue(value, findKey(clause.key)!.kind === 'text')).join(',')}`;
    case 'text':
      if (clause.value.kind === 'regex') return sign + printRegex(clause.value);
      return sign + (bareText.test(clause.value.text) && clause.value.text !== 'OR' ? clause.value.text : quote(clause.value.text));
    case 'group':
      return `${sign}(${clause.alternatives.map(printQuery).join(' OR ')})`;
  }
}

function printValue(value: Value, isText: boolean): string {
  switch (value.kind) {
    case 'null':
      return 'null';
    case 'regex':
      return printRegex(value);
    case 'compare':
      return (value.operator === '=' ? '' : value.operator) + printOperand(value.operand);
    case 'range':
      return `${value.low === null ? '' : printOperand(value.low)}..${value.high === null ? '' : printOperand(value.high)}`;
    case 'text':
      // Enumerations, ids and booleans never need quotes.
      return isText ? printText(value.text) : value.text;
  }
}

/** A text as the value of a key, quoted if necessary: `tool:${printText(name)}`. */
export const printText = (text: string): string => (bareValue.test(text) && text !== 'null' ? text : quote(text));

function printRegex(value: RegexValue): string {
  return `/${value.pattern}/${value.ignoreCase ? 'i' : ''}`;
}

function printOperand(operand: Operand): string {
  switch (operand.kind) {
    case 'number':
      return String(operand.value);
    case 'duration':
      return operand.value + operand.unit;
    case 'date':
      return operand.iso;
  }
}

function quote(text: string): string {
  return `"${text
    .replace(/["\\]/g, String.raw`\$&`)
    .replaceAll('\n', String.raw`\n`)
    .replaceAll('\t', String.raw`\t`)}"`;
}
