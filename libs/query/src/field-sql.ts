import {
  failureClassCode,
  fingerprintToBigint,
  type Phase,
  type ProvenanceField,
  PROVENANCES,
  type RolloutState,
  type StopReason,
  TRUNCATED_STOPS,
} from '@palestra/protocol';
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
  'env.version': 'env_version',
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

/** The SQL of `key:value,value`: true if one of the values holds. NULL, which counts as false, where the column is not known. */
export function fieldSql({ key, values }: FieldClause, positive: boolean, compilation: Compilation): string {
  if (key.startsWith('prov.')) return provenanceSql(key.slice(5) as ProvenanceField, values, compilation);
  const test = (column: string) => columnSql(column, 'text', values, positive, compilation);
  switch (key) {
    case 'tag':
      return compilation.schema.tagExists(test);
    case 'verdict':
    case 'author':
      return compilation.schema.annotationExists(key, test);
    case 'note':
      return compilation.schema.annotationExists('note', (column) => containsSql(column, values, positive, compilation));
    case 'tool':
      return compilation.schema.toolExists(false, test);
    case 'tool.error':
      return compilation.schema.toolExists(true, test);
    case 'run':
      return withUuid(test(compilation.column('run_name')), values, compilation);
    case 'task':
      return withIndex(test(compilation.column('task_key')), values, compilation);
    case 'phase':
      return phaseSql(values, compilation);
    case 'stop':
      return stopSql(texts(values) as StopReason[], compilation);
    case 'failure':
      return failureSql(values, compilation);
    case 'state':
      return isCode(
        compilation.column('state'),
        texts(values).map((state) => compilation.schema.stateCodes[state as RolloutState]),
        compilation,
      );
    case 'is':
      return anyOf(texts(values).map((value) => isSql(value as IsValue, compilation)));
    case 'has':
      return anyOf(texts(values).map((value) => hasSql(value as HasValue, compilation)));
    case 'received':
      return anyOf(values.map((value) => receivedSql(value, compilation)));
    case 'group.complete':
      return anyOf(values.map((value) => completeSql(value, compilation)));
    default:
      return columnSql(compilation.column(sameName[key as keyof typeof sameName]), findKey(key)!.kind, values, positive, compilation);
  }
}

const arrayTypes: Partial<Record<QueryKeyKind, string>> = { uuid: 'uuid[]', bigint: 'bigint[]' };

/** Compares a column with values of every kind. Equalities share one array, so that their number does not change the statement text. */
function columnSql(column: string, kind: QueryKeyKind, values: Value[], positive: boolean, compilation: Compilation): string {
  const parts: string[] = [];
  const equal = texts(values);
  if (equal.length > 0) parts.push(`${column} = ANY(${compilation.bind(equal)}::${arrayTypes[kind] ?? 'text[]'})`);
  for (const value of values) {
    if (value.kind === 'null') parts.push(`${column} IS NULL`);
    else if (value.kind === 'regex') parts.push(regexSql(column, value, positive, compilation));
    else if (value.kind !== 'text') parts.push(orderedSql(column, kind === 'integer' ? 'bigint' : 'float8', value, compilation));
  }
  return anyOf(parts);
}

function orderedSql(column: string, type: 'bigint' | 'float8', value: CompareValue | RangeValue, compilation: Compilation): string {
  const operand = (of: Operand) => `${compilation.bind(durationMs(of))}::${type}`;
  if (value.kind === 'compare') return `${column} ${value.operator} ${operand(value.operand)}`;
  const ends = [value.low && `${column} >= ${operand(value.low)}`, value.high && `${column} <= ${operand(value.high)}`];
  return allOf(ends.filter((end) => end !== null)) ?? `${column} IS NOT NULL`;
}

/** Selects at least the matching rows, and none inside a negation (see `compileQuery`). */
function regexSql(column: string, value: RegexValue, positive: boolean, compilation: Compilation): string {
  if (!positive) return 'FALSE';
  const literal = requiredLiteral(value);
  if (literal === null) return `${column} IS NOT NULL`;
  return `${column} ${value.ignoreCase ? 'ILIKE' : 'LIKE'} ${compilation.bind(likePattern(literal))}`;
}

function containsSql(column: string, values: Value[], positive: boolean, compilation: Compilation): string {
  return anyOf(
    values.map((value) => {
      if (value.kind === 'regex') return regexSql(column, value, positive, compilation);
      return `${column} ILIKE ${compilation.bind(likePattern((value as TextValue).text))}`;
    }),
  );
}

function withUuid(byName: string, values: Value[], compilation: Compilation): string {
  const ids = texts(values).map((text) => text.toLowerCase());
  const uuids = ids.filter((text) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text));
  return uuids.length === 0 ? byName : anyOf([byName, `${compilation.column('run_id')} = ANY(${compilation.bind(uuids)}::uuid[])`]);
}

function withIndex(byKey: string, values: Value[], compilation: Compilation): string {
  const indexes = texts(values).filter((text) => /^(?:0|[1-9]\d{0,8})$/.test(text));
  return indexes.length === 0 ? byKey : anyOf([byKey, `${compilation.column('task_index')} = ANY(${compilation.bind(indexes)}::bigint[])`]);
}

function phaseSql(values: Value[], compilation: Compilation): string {
  const column = compilation.column('phase');
  const phases = texts(values) as Phase[];
  const codes = phases.flatMap((phase) => (phase === 'unknown' ? [] : [compilation.schema.phaseCodes[phase]]));
  return anyOf([
    ...(codes.length > 0 ? [isCode(column, codes, compilation)] : []),
    ...(phases.includes('unknown') ? [`${column} IS NULL`] : []),
  ]);
}

/** The last two bits of a stored fingerprint are its class; 0 is a rollout whose cause is not known yet. */
function failureSql(values: Value[], compilation: Compilation): string {
  const column = compilation.column('cause');
  const classes = texts(values).flatMap((text) => failureClassCode(text) ?? []);
  const fingerprints = texts(values).flatMap((text) => (failureClassCode(text) === null ? fingerprintToBigint(text) : []));
  return anyOf([
    ...(fingerprints.length > 0 ? [`${column} = ANY(${compilation.bind(fingerprints)}::bigint[])`] : []),
    ...(classes.length > 0 ? [`(${column} & 3)::int = ANY(${compilation.bind(classes)}::int[])`] : []),
    ...(values.some(({ kind }) => kind === 'null') ? [`${column} IS NULL`] : []),
  ]);
}

function stopSql(stops: readonly StopReason[], compilation: Compilation): string {
  const column = compilation.column('stop');
  const known = isCode(
    column,
    stops.map((stop) => compilation.schema.stopCodes[stop]),
    compilation,
  );
  return stops.includes('unknown') ? anyOf([known, `${column} IS NULL`]) : known;
}

function isCode(column: string, codes: number[], compilation: Compilation): string {
  return `${column} = ANY(${compilation.bind(codes)}::smallint[])`;
}

function provenanceSql(field: ProvenanceField, values: Value[], compilation: Compilation): string {
  const levels = texts(values).map((text) => (PROVENANCES as readonly string[]).indexOf(text));
  return `${provenanceBits(field, compilation)} = ANY(${compilation.bind(levels)}::int[])`;
}

function provenanceBits(field: ProvenanceField, compilation: Compilation): string {
  return `((${compilation.column('prov')} >> ${compilation.schema.provShifts[field]}) & 3)`;
}

function isSql(property: IsValue, compilation: Compilation): string {
  switch (property) {
    case 'finished':
      return stopSql(['finished'], compilation);
    case 'truncated':
      return stopSql(TRUNCATED_STOPS, compilation);
    case 'scored':
      return `${compilation.column('reward')} IS NOT NULL`;
    case 'unscored':
      return `${compilation.column('reward')} IS NULL`;
    case 'best':
      return `${compilation.column('reward')} = ${compilation.column('group_max')}`;
    case 'worst':
      return `${compilation.column('reward')} = ${compilation.column('group_min')}`;
    case 'live':
      return isCode(compilation.column('state'), [compilation.schema.stateCodes.live], compilation);
    case 'eval':
      return isCode(compilation.column('phase'), [compilation.schema.phaseCodes.eval], compilation);
  }
}

function hasSql(content: HasValue, compilation: Compilation): string {
  switch (content) {
    case 'error':
      return `${compilation.column('call_errors')} > 0`;
    case 'gap':
      return `${compilation.column('gaps')} > 0`;
    case 'note':
      return compilation.schema.annotationExists('note', (note) => `${note} <> ''`);
    case 'telemetry':
      return `${provenanceBits('telemetry', compilation)} <> 0`;
    default:
      return `(${compilation.column('flags')} & ${compilation.schema.flagBits[content]}) <> 0`;
  }
}

function receivedSql(value: Value, compilation: Compilation): string {
  const column = compilation.column('received');
  const { from, to } = windowOf(value as CompareValue | RangeValue, compilation.now);
  const at = (ms: number) => `${compilation.bind(new Date(ms).toISOString())}::timestamptz`;
  const ends = [from === undefined ? null : `${column} >= ${at(from)}`, to === undefined ? null : `${column} < ${at(to)}`];
  return allOf(ends.filter((end) => end !== null)) ?? `${column} IS NOT NULL`;
}

function completeSql(value: Value, compilation: Compilation): string {
  const n = compilation.column('group_n');
  const expected = compilation.column('group_n_expected');
  if (value.kind === 'null') return `${expected} IS NULL`;
  return (value as TextValue).text === 'true' ? `${n} >= ${expected}` : `${n} < ${expected}`;
}

const texts = (values: Value[]): string[] => values.flatMap((value) => (value.kind === 'text' ? [value.text] : []));

/** Joins the parts by OR, in parentheses if there are several. */
function anyOf(parts: string[]): string {
  return parts.length === 1 ? parts[0]! : `(${parts.join(' OR ')})`;
}

function allOf(parts: string[]): string | null {
  return parts.length === 0 ? null : `(${parts.join(' AND ')})`;
}
