import { CALL_FAILURES, failureClassCode } from '@palestra/protocol';
import type { CompareOperator, Operand, Span, Value } from './ast.ts';
import type { QueryKeyEntry } from './catalogue.ts';
import { nearest, QueryError } from './query-error.ts';
import { durationMs, periodOf } from './time-window.ts';

const numberPattern = /^-?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d{1,3})?$/;
const durationPattern = /^(\d{1,13}(?:\.\d{1,6})?)(ms|s|m|h|d|w)$/;
const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const booleans: Record<string, string> = { true: 'true', yes: 'true', false: 'false', no: 'false' };
const INT64_MAX = 2n ** 63n - 1n;
const MAX_AGE_MS = 100 * 365 * 86_400_000;

const expected: Record<QueryKeyEntry['kind'], string> = {
  text: 'a word, a "quoted text" or a /regex/',
  integer: 'a whole number, a comparison (>8) or a range (1..4)',
  number: 'a number, a comparison (<0.2) or a range (0..0.5)',
  duration: 'a duration such as 500ms or 2m, a comparison (>2m) or a range',
  time: 'an age such as 2h, a date such as 2026-11-20, a comparison or a range',
  enum: 'one of its values',
  boolean: 'true or false',
  uuid: 'an id',
  bigint: 'a whole number',
  failure: 'a fingerprint of 16 hexadecimal digits, policy, environment or infrastructure',
};

export function wrongValue(entry: QueryKeyEntry, raw: string, span: Span, why?: string, suggestion?: string): QueryError {
  const wanted = entry.values === undefined ? expected[entry.kind] : `one of ${entry.values.join(', ')}`;
  const orNull = entry.nullable ? ', or null' : '';
  return new QueryError(`${why === undefined ? '' : `${why} `}${entry.key}: expects ${wanted}${orNull}. Example: ${entry.example}`, {
    ...span,
    token: raw,
    suggestion,
  });
}

/** Parses an unquoted value by the kind of its key. */
export function readWord(entry: QueryKeyEntry, raw: string, at: Span): Value {
  const span = { position: at.position, length: at.length };
  if (raw === 'null' && entry.nullable) return { kind: 'null', ...span };
  switch (entry.kind) {
    case 'integer':
    case 'number':
    case 'duration':
    case 'time':
      return readOrdered(entry, raw, span);
    case 'text':
      if (/^[<>=]/.test(raw)) throw wrongValue(entry, raw, span, 'A text cannot be compared.');
      return { kind: 'text', text: raw, ...span };
    default:
      return { kind: 'text', text: readExact(entry, raw, span), ...span };
  }
}

/** Parses a quoted value: a text; for keys without order the same as without quotes. */
export function readQuoted(entry: QueryKeyEntry, text: string, raw: string, at: Span): Value {
  const span = { position: at.position, length: at.length };
  if (entry.kind === 'text') return { kind: 'text', text, ...span };
  if (['integer', 'number', 'duration', 'time'].includes(entry.kind)) throw wrongValue(entry, raw, span, 'This is a text.');
  return { kind: 'text', text: readExact(entry, text, span), ...span };
}

function readExact(entry: QueryKeyEntry, raw: string, span: Span): string {
  const lower = raw.toLowerCase();
  switch (entry.kind) {
    case 'enum':
      if (entry.values!.includes(lower)) return lower;
      throw wrongValue(entry, raw, span, undefined, nearest(raw, entry.values!));
    case 'boolean':
      if (Object.hasOwn(booleans, lower)) return booleans[lower]!;
      break;
    case 'uuid':
      if (uuidPattern.test(raw)) return lower;
      break;
    case 'failure':
      if (failureClassCode(lower) !== null || /^[0-9a-f]{16}$/.test(lower)) return lower;
      throw wrongValue(entry, raw, span, undefined, nearest(raw, CALL_FAILURES));
    default:
      if (/^-?\d{1,19}$/.test(raw) && isInt64(BigInt(raw))) return BigInt(raw).toString();
  }
  throw wrongValue(entry, raw, span);
}

const isInt64 = (value: bigint): boolean => value <= INT64_MAX && value >= -INT64_MAX - 1n;

function readOrdered(entry: QueryKeyEntry, raw: string, span: Span): Value {
  const dots = raw.indexOf('..');
  if (dots >= 0) {
    const low = dots === 0 ? null : readOperand(entry, raw.slice(0, dots), raw, span);
    const high = dots + 2 === raw.length ? null : readOperand(entry, raw.slice(dots + 2), raw, span);
    checkOrder(entry, low, high, raw, span);
    return { kind: 'range', low, high, ...span };
  }
  const operator = /^(?:<=|>=|<|>|=)/.exec(raw)?.[0] as CompareOperator | undefined;
  const operand = readOperand(entry, raw.slice(operator?.length ?? 0), raw, span);
  return { kind: 'compare', operator: operator ?? '=', operand, ...span };
}

function readOperand(entry: QueryKeyEntry, text: string, raw: string, span: Span): Operand {
  if (entry.kind === 'time' && periodOf(text) !== undefined) return { kind: 'date', iso: text };
  if (entry.kind === 'time' || entry.kind === 'duration') {
    const found = durationPattern.exec(text);
    if (found !== null) {
      const operand = { kind: 'duration', value: Number(found[1]), unit: found[2] as 'ms' } as const;
      if (durationMs(operand) > MAX_AGE_MS) throw wrongValue(entry, raw, span, 'A hundred years are the limit.');
      return operand;
    }
  }
  if (entry.kind === 'time' || !numberPattern.test(text)) throw wrongValue(entry, raw, span);
  // Adding 0 turns -0 into 0, which prints the same.
  const value = Number(text) + 0;
  if (!Number.isFinite(value)) throw wrongValue(entry, raw, span, 'The number is too large.');
  if (entry.kind === 'integer' && !Number.isSafeInteger(value))
    throw wrongValue(entry, raw, span, 'The number is not whole, or too large.');
  return { kind: 'number', value };
}

function checkOrder(entry: QueryKeyEntry, low: Operand | null, high: Operand | null, raw: string, span: Span): void {
  if (low === null || high === null) return;
  if (entry.kind === 'time' && low.kind !== high.kind) throw wrongValue(entry, raw, span, 'A range has two dates or two ages.');
  const start = low.kind === 'date' ? periodOf(low.iso)!.from : durationMs(low);
  const end = high.kind === 'date' ? periodOf(high.iso)!.to : durationMs(high);
  if (start > end) throw wrongValue(entry, raw, span, 'The range ends before it starts.');
}
