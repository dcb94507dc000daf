import { type Phase, type ProvenanceField, PROVENANCES, type RolloutState, type StopReason, TRUNCATED_STOPS } from '@palestra/protocol';
import type { CompareValue, FieldClause, Operand, RangeValue, RegexValue, TextValue, Value } from './ast.ts';
import { findKey, type HasValue, type IsValue, type QueryKeyKind } from './catalogue.ts';
import type { Compilation } from './compilation.ts';
import { likePattern } from './like.ts';
import { requiredLiteral } from './regex.ts';
import type { FieldName } from './schema.ts';
import { durationMs, windowOf } from './time-window.ts';

const sameName = {
  id: 'id',
  name: 'name',
  env: 'env',
  split: 'split',
  group: 'group_key',
  sample: 'sample',
  model: 'model',
  step: 'step',
  policy_step: 'policy_step',
  reward: 'reward',
  turns: 'turns',
  calls: 'calls',
  msgs: 'msgs',
  tok: 'tok',
  bytes: 'bytes',
  dur: 'dur',
  lat: 'lat',
  'group.n': 'group_n',
  'group.mean': 'group_mean',
  'group.std': 'group_std',
  'group.pass': 'group_pass',
} as const satisfies Partial<Record<FieldClause['key'], FieldName>>;

/** `key:value,value`: one of the values holds. Null where nothing is known, which counts as false. */
export function fieldSql({ key, values }: FieldClause, positive: boolean, made: Compilation): string {
  if (key.startsWith('prov.')) return provenanceSql(key.slice(5) as ProvenanceField, values, made);
  const test = (column: string) => columnSql(column, 'text', values, positive, made);
  switch (key) {
    case 'tag':
      return made.schema.tagExists(test);
    case 'verdict':
    case 'author':
      return made.schema.annotationExists(key, test);
    case 'note':
      return made.schema.annotationExists('note', (column) => containsSql(column, values, positive, made));
    case 'tool':
      return made.schema.toolExists(false, test);
    case 'tool.error':
      return made.schema.toolExists(true, test);
    case 'run':
      return withUuid(test(made.column('run_name')), values, made);
    case 'task':
      return withIndex(test(made.column('task_key')), values, made);
    case 'phase':
      return phaseSql(values, made);
    case 'stop':
      return stopSql(texts(values) as StopReason[], made);
    case 'state':
      return isCode(
        made.column('state'),
        texts(values).map((state) => made.schema.stateCodes[state as RolloutState]),
        made,
      );
    case 'is':
      return anyOf(texts(values).map((value) => isSql(value as IsValue, made)));
    case 'has':
      return anyOf(texts(values).map((value) => hasSql(value as HasValue, made)));
    case 'received':
      return anyOf(values.map((value) => receivedSql(value, made)));
    case 'group.complete':
      return anyOf(values.map((value) => completeSql(value, made)));
    default:
      return columnSql(made.column(sameName[key as keyof typeof sameName]), findKey(key)!.kind, values, positive, made);
  }
}

const arrayTypes: Partial<Record<QueryKeyKind, string>> = { uuid: 'uuid[]', bigint: 'bigint[]' };

/** One column against values of every kind; equalities share one array, so that a statement's text does not depend on their number. */
function columnSql(column: string, kind: QueryKeyKind, values: Value[], positive: boolean, made: Compilation): string {
  const parts: string[] = [];
  const equal = texts(values);
  if (equal.length > 0) parts.push(`${column} = ANY(${made.bind(equal)}::${arrayTypes[kind] ?? 'text[]'})`);
  for (const value of values) {
    if (value.kind === 'null') parts.push(`${column} IS NULL`);
    else if (value.kind === 'regex') parts.push(regexSql(column, value, positive, made));
    else if (value.kind !== 'text') parts.push(orderedSql(column, kind === 'integer' ? 'bigint' : 'float8', value, made));
  }
  return anyOf(parts);
}

function orderedSql(column: string, type: 'bigint' | 'float8', value: CompareValue | RangeValue, made: Compilation): string {
  const operand = (of: Operand) => `${made.bind(durationMs(of))}::${type}`;
  if (value.kind === 'compare') return `${column} ${value.operator} ${operand(value.operand)}`;
  const ends = [value.low && `${column} >= ${operand(value.low)}`, value.high && `${column} <= ${operand(value.high)}`];
  return allOf(ends.filter((end) => end !== null)) ?? `${column} IS NOT NULL`;
}

/** At least the rows that match, or under a negation none: see compileQuery. */
function regexSql(column: string, value: RegexValue, positive: boolean, made: Compilation): string {
  if (!positive) return 'FALSE';
  const literal = requiredLiteral(value);
  if (literal === null) return `${column} IS NOT NULL`;
  return `${column} ${value.ignoreCase ? 'ILIKE' : 'LIKE'} ${made.bind(likePattern(literal))}`;
}

function containsSql(column: string, values: Value[], positive: boolean, made: Compilation): string {
  return anyOf(
    values.map((value) => {
      if (value.kind === 'regex') return regexSql(column, value, positive, made);
      return `${column} ILIKE ${made.bind(likePattern((value as TextValue).text))}`;
    }),
  );
}

function withUuid(byName: string, values: Value[], made: Compilation): string {
  const ids = texts(values).map((text) => text.toLowerCase());
  const uuids = ids.filter((text) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text));
  return uuids.length === 0 ? byName : anyOf([byName, `${made.column('run_id')} = ANY(${made.bind(uuids)}::uuid[])`]);
}

function withIndex(byKey: string, values: Value[], made: Compilation): string {
  const indexes = texts(values).filter((text) => /^(?:0|[1-9]\d{0,8})$/.test(text));
  return indexes.length === 0 ? byKey : anyOf([byKey, `${made.column('task_index')} = ANY(${made.bind(indexes)}::bigint[])`]);
}

function phaseSql(values: Value[], made: Compilation): string {
  const column = made.column('phase');
  const phases = texts(values) as Phase[];
  const codes = phases.flatMap((phase) => (phase === 'unknown' ? [] : [made.schema.phaseCodes[phase]]));
  return anyOf([...(codes.length > 0 ? [isCode(column, codes, made)] : []), ...(phases.includes('unknown') ? [`${column} IS NULL`] : [])]);
}

function stopSql(stops: readonly StopReason[], made: Compilation): string {
  const column = made.column('stop');
  const known = isCode(
    column,
    stops.map((stop) => made.schema.stopCodes[stop]),
    made,
  );
  return stops.includes('unknown') ? anyOf([known, `${column} IS NULL`]) : known;
}

function isCode(column: string, codes: number[], made: Compilation): string {
  return `${column} = ANY(${made.bind(codes)}::smallint[])`;
}

function provenanceSql(field: ProvenanceField, values: Value[], made: Compilation): string {
  const levels = texts(values).map((text) => (PROVENANCES as readonly string[]).indexOf(text));
  return `${provenanceBits(field, made)} = ANY(${made.bind(levels)}::int[])`;
}

function provenanceBits(field: ProvenanceField, made: Compilation): string {
  return `((${made.column('prov')} >> ${made.schema.provShifts[field]}) & 3)`;
}

function isSql(property: IsValue, made: Compilation): string {
  switch (property) {
    case 'finished':
      return stopSql(['finished'], made);
    case 'truncated':
      return stopSql(TRUNCATED_STOPS, made);
    case 'scored':
      return `${made.column('reward')} IS NOT NULL`;
    case 'unscored':
      return `${made.column('reward')} IS NULL`;
    case 'best':
      return `${made.column('reward')} = ${made.column('group_max')}`;
    case 'worst':
      return `${made.column('reward')} = ${made.column('group_min')}`;
    case 'live':
      return isCode(made.column('state'), [made.schema.stateCodes.live], made);
    case 'eval':
      return isCode(made.column('phase'), [made.schema.phaseCodes.eval], made);
  }
}

function hasSql(content: HasValue, made: Compilation): string {
  switch (content) {
    case 'error':
      return `${made.column('call_errors')} > 0`;
    case 'gap':
      return `${made.column('gaps')} > 0`;
    case 'note':
      return made.schema.annotationExists('note', (note) => `${note} <> ''`);
    case 'telemetry':
      return `${provenanceBits('telemetry', made)} <> 0`;
    default:
      return `(${made.column('flags')} & ${made.schema.flagBits[content]}) <> 0`;
  }
}

function receivedSql(value: Value, made: Compilation): string {
  const column = made.column('received');
  const { from, to } = windowOf(value as CompareValue | RangeValue, made.now);
  const at = (ms: number) => `${made.bind(new Date(ms).toISOString())}::timestamptz`;
  const ends = [from === undefined ? null : `${column} >= ${at(from)}`, to === undefined ? null : `${column} < ${at(to)}`];
  return allOf(ends.filter((end) => end !== null)) ?? `${column} IS NOT NULL`;
}

function completeSql(value: Value, made: Compilation): string {
  const n = made.column('group_n');
  const expected = made.column('group_n_expected');
  if (value.kind === 'null') return `${expected} IS NULL`;
  return (value as TextValue).text === 'true' ? `${n} >= ${expected}` : `${n} < ${expected}`;
}

const texts = (values: Value[]): string[] => values.flatMap((value) => (value.kind === 'text' ? [value.text] : []));

/** One of the parts; in parentheses when there are several, so that it can stand anywhere. */
function anyOf(parts: string[]): string {
  return parts.length === 1 ? parts[0]! : `(${parts.join(' OR ')})`;
}

function allOf(parts: string[]): string | null {
  return parts.length === 0 ? null : `(${parts.join(' AND ')})`;
}
