import { PalestraError, PHASES, PROVENANCE_FIELDS, type ProvenanceField, STOP_REASONS } from '@palestra/protocol';
import { LIVE_MS, provenanceShift, ROLLOUT_FLAGS, STALE_MS } from '@palestra/rollouts';
import {
  type Clause,
  type CompiledQuery,
  compileQuery,
  likePattern,
  parseQuery,
  printQuery,
  type Query,
  QUERY_LIMITS,
  QueryError,
  type QuerySchema,
} from '@palestra/query';
import { codeOf } from '../store/vocabulary-codes.ts';
import type pg from 'pg';
import { selectBlocks, selectRolloutsIn } from '../store/derive/search/found-blocks.sql.ts';
import { environmentVersion } from './environment-version.sql.ts';
import { sampleSql } from './sample.sql.ts';
import { foundBy, plainWords, runWord, typeWord } from '../store/derive/search/search-index.sql.ts';

/** The query language over the tables of the store: alias `r` is `rollouts`. Every other table is reached by its primary key. */

const one = (column: string, table: string, alias: string, on: string) => `(SELECT ${alias}.${column} FROM ${table} ${alias} WHERE ${on})`;
const env = (column: string) => one(column, 'rollout_environments', 'e', 'e.id = r.env_id');
const meta = (column: string) => one(column, 'rollout_meta', 'm', 'm.rollout_seq = r.seq');
const run = (column: string) => one(column, 'runs', 'u', 'u.seq = r.run_seq');
const group = (expression: string) =>
  `(SELECT ${expression} FROM rollout_groups g WHERE g.run_seq = r.run_seq AND g.group_key = r.group_key AND g.phase = r.phase AND g.step = COALESCE(r.step, -1))`;
const VARIANCE = '(g.sum_squares - g.sum * g.sum / g.scored) / (g.scored - 1)';
// Sums leave a remainder if all rewards are equal; the tolerance is that of zero variance (docs/reference/metrics.md#canonical-metrics).
const STD = `CASE WHEN g.scored < 2 THEN NULL WHEN g.max - g.min <= 1e-6 THEN 0 ELSE sqrt(GREATEST(${VARIANCE}, 0)) END`;

const MESSAGES = 'rollout_messages mm JOIN rollout_heads h ON h.seq = mm.rollout_seq AND h.day = mm.day';

export const storeSchema: QuerySchema = {
  fields: {
    id: 'r.id',
    name: meta('rollout_name'),
    run_id: run('id'),
    run_name: run('name'),
    env: env('environment'),
    env_version: environmentVersion('r.seq'),
    split: 'r.split',
    phase: `NULLIF(r.phase, ${PHASES.indexOf('unknown')})`,
    task_key: one('key', 'rollout_tasks', 't', 't.id = r.task_id'),
    task_index: 'r.task_index',
    group_key: 'r.group_key',
    sample: sampleSql('r'),
    model: meta('model'),
    step: 'r.step',
    policy_step: 'r.policy_step',
    reward: 'r.reward',
    turns: 'r.turns',
    calls: 'r.calls',
    call_errors: 'r.call_errors',
    msgs: 'r.messages',
    tok: '(r.tokens_out::float8 + COALESCE(r.tokens_tool, 0))',
    bytes: 'r.bytes',
    gaps: 'r.gaps',
    dur: '(extract(epoch FROM r.last_at - r.received_at)::float8 * 1000)',
    lat: 'r.latency_ms',
    received: 'r.received_at',
    stop: `COALESCE(r.stop, ${STOP_REASONS.indexOf('unknown')})`,
    cause: 'r.cause',
    state: `CASE WHEN NOT r.finished AND r.last_at > now() - interval '${LIVE_MS} ms' THEN 0 WHEN r.messages = 0 THEN 3 WHEN r.finished THEN 1
        WHEN r.last_at < now() - interval '${STALE_MS} ms' THEN 2 ELSE 1 END`,
    flags: 'r.flags',
    prov: 'r.provenance',
    group_n: group('g.n'),
    group_n_expected: group('g.n_expected'),
    group_mean: group('g.sum / NULLIF(g.scored, 0)'),
    group_std: group(STD),
    group_pass: group('g.successes::float8 / NULLIF(g.scored, 0)'),
    group_min: group('g.min'),
    group_max: group('g.max'),
  },
  stopCodes: Object.fromEntries(STOP_REASONS.map((stop, code) => [stop, code])) as QuerySchema['stopCodes'],
  phaseCodes: { train: codeOf(PHASES, 'train')!, eval: codeOf(PHASES, 'eval')! },
  stateCodes: { live: 0, complete: 1, stale: 2, empty: 3 },
  flagBits: {
    image: ROLLOUT_FLAGS.has_image,
    reasoning: ROLLOUT_FLAGS.has_reasoning,
    nonfinite: ROLLOUT_FLAGS.nonfinite,
    parse_error: ROLLOUT_FLAGS.parse_error,
    orphan: ROLLOUT_FLAGS.orphan_result,
    subagent: ROLLOUT_FLAGS.subagent,
    mismatch: ROLLOUT_FLAGS.reward_mismatch,
    ambiguous_task: ROLLOUT_FLAGS.ambiguous_task,
  },
  provShifts: Object.fromEntries(PROVENANCE_FIELDS.map((field) => [field, provenanceShift(field)])) as Record<ProvenanceField, number>,
  tagExists: (test) => `EXISTS (SELECT FROM annotations a WHERE a.rollout_seq = r.seq AND ${test('a.tag')})`,
  annotationExists: (field, test) => `EXISTS (SELECT FROM annotations a WHERE a.rollout_seq = r.seq AND ${test(`a.${field}`)})`,
  toolExists: (failed, test) =>
    `EXISTS (SELECT FROM rollout_tools x WHERE x.rollout_seq = r.seq ${failed ? 'AND x.errors > 0' : ''} AND ${test('x.tool')})`,
  textExists: ({ kind, text, ignoreCase, types }, bind) => {
    if (kind === 'phrase') return phraseMark(bind(new Phrase(text, types)), bind(MARKS));
    // Sealed messages are not in the table; only the caller's filter can search them.
    const ofType = types === null ? '' : ` AND mm.type = ANY(${bind(types)})`;
    const found = `mm.content ${ignoreCase ? 'ILIKE' : 'LIKE'} ${bind(likePattern(text))}`;
    // OFFSET 0 forces one look-up per rollout. Otherwise the planner may join and read the messages of all runs for one page.
    const messages = `SELECT FROM ${MESSAGES} WHERE mm.rollout_seq = r.seq${ofType} AND ${found} OFFSET 0`;
    return `EXISTS (SELECT FROM rollout_heads h WHERE h.seq = r.seq AND h.sealed_at IS NOT NULL) OR EXISTS (${messages})`;
  },
};

/** A phrase until `located` looks it up, and the place of its condition. */
class Phrase {
  constructor(
    readonly text: string,
    readonly types: readonly string[] | null,
  ) {}
}
const MARKS = Symbol('the marks of the phrase before');
const phraseMark = (text: string, marks: string) => `\u0001${text}\u0001${marks}\u0001`;
const PHRASE_MARKS = /\u0001\$(?<text>\d+)\u0001(?<marks>\$\d+)\u0001/g;

const quoted = (word: string) => `'${word.replaceAll("'", "''").replaceAll('\\', '\\\\')}'`;
const anyWord = (words: readonly string[]) => words.map(quoted).join(' | ');

/** A `tsquery` that finds messages of these runs. Without runs none: PostgreSQL ignores an empty `tsquery` beside another one. */
export const runsQuery = (runSeqs: readonly number[]): string => anyWord(runSeqs.length === 0 ? [runWord('')] : runSeqs.map(runWord));

export interface RolloutQuery {
  /** The canonical text of the query. */
  text: string;
  /** A condition on `r`. Its parameters are numbered from `firstParameter`. */
  where: { sql: string; values: readonly unknown[] };
  compiled: CompiledQuery;
}

/** Blocks of messages that are read for the rollouts of a phrase: about 20 ms. */
const MAX_BLOCKS = 64;

/** Throws `invalid_query` with the wrong word and a suggestion. */
export async function rolloutQuery(pool: pg.Pool, text: string, runSeqs: readonly number[], firstParameter: number): Promise<RolloutQuery> {
  return located(
    pool,
    compile(() => parseQuery(text), firstParameter),
    runSeqs,
    firstParameter,
  );
}

/** The query as the printer formats it. Throws as `rolloutQuery`. */
export const canonicalQuery = (text: string): string => compile(() => parseQuery(text), 1).text;

/**
 * The query, restricted to rollouts with a message that matches the regex. An `in:` of the query applies to its own texts only. Throws as
 * `rolloutQuery`.
 */
export async function regexQuery(
  pool: pg.Pool,
  pattern: string,
  text: string,
  runSeqs: readonly number[],
  firstParameter: number,
): Promise<RolloutQuery> {
  const at = { position: 0, length: pattern.length };
  const query = compile(() => {
    const within = parseQuery(text);
    const refuse = (message: string) => new QueryError(message, { ...at, token: pattern });
    if (pattern.length > QUERY_LIMITS.regexLength) throw refuse(`A regex has at most ${QUERY_LIMITS.regexLength} characters.`);
    if (pattern.includes('\0')) throw refuse('A regex cannot contain the character U+0000.');
    const regex: Clause = { kind: 'text', negated: false, value: { kind: 'regex', pattern, ignoreCase: false, ...at }, ...at };
    return { ...at, clauses: [{ kind: 'group', negated: false, alternatives: [within], ...at }, regex] };
  }, firstParameter);
  return located(pool, query, runSeqs, firstParameter);
}

/**
 * Looks up the phrases of a query. The rollouts of a rare one are listed, because an index finds them in the order of any list; those of a common one are
 * recognised one by one, because a page is soon full of them. PostgreSQL cannot tell one from the other.
 */
async function located(pool: pg.Pool, query: RolloutQuery, runSeqs: readonly number[], firstParameter: number): Promise<RolloutQuery> {
  let { sql } = query.where;
  const values = [...query.where.values];
  for (const { 0: mark, groups } of sql.matchAll(PHRASE_MARKS)) {
    const at = Number(groups!['text']) - firstParameter;
    const { text, types } = values[at] as Phrase;
    const words = types?.map(typeWord) ?? null;
    const marks = words === null ? runsQuery(runSeqs) : `(${runsQuery(runSeqs)}) & (${anyWord(words)})`;
    const phrase = text.replaceAll('\0', ' ');
    const { blocks, total } = await selectBlocks(pool, { runSeqs, text: phrase, types: words }, '0', MAX_BLOCKS);
    const isRare = total <= MAX_BLOCKS;
    const found = foundBy(`${groups!['marks']}::tsquery`, `phraseto_tsquery('simple', ${plainWords(`$${groups!['text']}`)})`);
    const each = `EXISTS (SELECT FROM (SELECT x.words FROM rollout_search x WHERE x.rollout_seq = r.seq OFFSET 0) s WHERE ${found})`;
    sql = sql.replace(mark, () =>
      isRare ? `(r.seq = ANY($${groups!['text']}::bigint[]) AND ${groups!['marks']}::text IS NOT NULL)` : each,
    );
    values[at] = isRare ? await selectRolloutsIn(pool, blocks, phrase, marks) : phrase;
    values[at + 1] = marks;
  }
  return { ...query, where: { sql, values } };
}

function compile(read: () => Query, firstParameter: number): RolloutQuery {
  try {
    const query = read();
    const compiled = compileQuery(query, storeSchema, { now: Date.now(), firstParameter });
    return { text: printQuery(query), where: { sql: compiled.where, values: compiled.values }, compiled };
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
    const { message: msg, position, length, token, suggestion } = error;
    const detail = [{ type: 'value_error', loc: ['query', 'q', position], msg, length, token, ...(suggestion ? { suggestion } : {}) }];
    throw new PalestraError('invalid_query', { detail, cause: error });
  }
}
