import { fingerprintOfBigint, type Phase, PHASES, PROVENANCE_FIELDS, PROVENANCES, ROLLOUT_STATES, STOP_REASONS } from '@palestra/protocol';
import { type QueryGroup, type QueryRow, ROLLOUT_FLAGS } from '@palestra/query';
import type pg from 'pg';
import { wordOf } from '../store/vocabulary-codes.ts';
import { storeSchema } from './rollout-query.ts';

type UnchangedField = Exclude<keyof QueryRow, 'phase' | 'stop' | 'state' | 'flags' | 'prov' | 'group' | 'messages'>;
type Row = Pick<QueryRow, UnchangedField> & {
  seq: string;
  phase: number | null;
  stop: number;
  state: number;
  flags: number;
  prov: number;
  group: QueryGroup | null;
  tools: { name: string; failed: boolean }[];
};

const { fields, flagBits, provShifts } = storeSchema;
const list = (from: string) => `COALESCE((SELECT json_agg(${from}), '[]')`;

/** The same expressions as `storeSchema`, so that the database and the filter see the same values when each evaluates a part of a query. */
const QUERY_ROWS = `
SELECT r.seq::text, ${fields.id} AS id, ${fields.name} AS name, ${fields.run_id} AS "runId", ${fields.run_name} AS "runName",
  ${fields.env} AS env, ${fields.env_version} AS "envVersion", ${fields.split} AS split, ${fields.phase} AS phase, ${fields.task_key} AS "taskKey",
  ${fields.task_index} AS "taskIndex", ${fields.group_key}::text AS "groupKey", ${fields.sample} AS sample, ${fields.model} AS model,
  ${fields.step} AS step, ${fields.policy_step} AS "policyStep", ${fields.reward} AS reward, ${fields.turns} AS turns,
  ${fields.calls} AS calls, ${fields.call_errors} AS "callErrors", ${fields.msgs} AS msgs, ${fields.tok} AS tokens,
  ${fields.bytes}::float8 AS bytes, ${fields.gaps} AS gaps, ${fields.dur} AS "durationMs", ${fields.lat} AS "latencyMs",
  extract(epoch FROM ${fields.received})::float8 * 1000 AS "receivedAt", ${fields.stop} AS stop, ${fields.cause}::text AS cause, ${fields.state} AS state,
  ${fields.flags} AS flags, ${fields.prov} AS prov,
  (SELECT json_build_object('n', g.n, 'nExpected', g.n_expected, 'scored', g.scored, 'successes', g.successes, 'sum', g.sum, 'sumsq', g.sum_squares,
      'min', g.min, 'max', g.max)
    FROM rollout_groups g WHERE g.run_seq = r.run_seq AND g.group_key = r.group_key AND g.phase = r.phase AND g.step = COALESCE(r.step, -1)) AS "group",
  ${list('a.tag) FROM annotations a WHERE a.rollout_seq = r.seq AND a.tag IS NOT NULL')} AS tags,
  ${list(`json_build_object('verdict', a.verdict, 'note', a.note, 'author', a.author)) FROM annotations a WHERE a.rollout_seq = r.seq`)} AS annotations,
  ${list(`json_build_object('name', x.tool, 'failed', x.errors > 0)) FROM rollout_tools x WHERE x.rollout_seq = r.seq`)} AS tools
FROM rollouts r WHERE r.seq = ANY($1::bigint[])`;

/**
 * Rollouts for the filter of a query, by `seq`; of their messages only the names of called tools. Plan: rollouts_pkey, per row primary
 * keys.
 */
export async function selectQueryRows(pool: pg.Pool, seqs: readonly string[]): Promise<Map<string, QueryRow>> {
  const { rows } = await pool.query<Row>({ name: 'query-rows', text: QUERY_ROWS, values: [seqs] });
  return new Map(rows.map((row) => [row.seq, queryRow(row)]));
}

function queryRow({ tools, ...row }: Row): QueryRow {
  return {
    ...row,
    phase: wordOf(PHASES, row.phase) ?? ('unknown' satisfies Phase),
    cause: row.cause === null ? null : fingerprintOfBigint(row.cause),
    stop: wordOf(STOP_REASONS, row.stop) ?? 'unknown',
    state: ROLLOUT_STATES[row.state]!,
    flags: ROLLOUT_FLAGS.filter((flag) => (row.flags & flagBits[flag]) !== 0),
    prov: Object.fromEntries(PROVENANCE_FIELDS.map((field) => [field, PROVENANCES[(row.prov >> provShifts[field]) & 3]])),
    messages: tools.map((tool) => ({ type: 'tool_call', content: null, ...tool })),
  };
}

/** Adds the texts of messages. The row already has the called tools and their failures. */
export const withTexts = (row: QueryRow, texts: readonly { type: string; content: string | null }[]): QueryRow => ({
  ...row,
  messages: [
    ...row.messages,
    ...texts.map(({ type, content }) => ({ type: type as QueryRow['messages'][number]['type'], name: null, failed: false, content })),
  ],
});
