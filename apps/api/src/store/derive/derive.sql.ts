import type pg from 'pg';
import type { JsonObject, ProvenanceField, UnscoredFailure } from '@palestra/protocol';
import { provenanceShift, type RawRollout } from '@palestra/rollouts';
import type { RunRange } from './run-rounds.ts';

/** A rollout that changed since its narrow row was written. Times in milliseconds since the epoch. */
export interface DirtyHead {
  seq: string;
  id: string;
  org_id: string;
  day: string;
  run_seq: number;
  revision: number;
  finished: boolean;
  failure_class: UnscoredFailure | null;
  flags: number;
  bytes: string;
  /** Received messages. */
  messages: number;
  received_at: number;
  last_at: number;
  /** Since the last event. */
  quiet_ms: number;
  sealed: boolean;
  start: JsonObject | null;
  rollout_info: JsonObject | null;
  /** Task of the session that it was matched with (verify.sql.ts). */
  ledger_task: RawRollout['ledgerTask'];
}

/** A part of the work: that whose number, divided by `of`, leaves the remainder `number`. */
export interface Lane {
  number: number;
  of: number;
}

export type DirtyFilter = { lane: Lane; range: RunRange } | { runSeq: number } | { seq: string };

/** Memory that a message takes beside its text, bytes. */
export const MESSAGE_BYTES = 256;

/**
 * The next changed rollouts, with at most $4 bytes of messages or one rollout. Plan: Index Scan using rollout_heads_dirty_idx (partial), one
 * probe of rollout_starts_pkey and rollout_meta_pkey a row. A rollout: rollout_heads_pkey.
 */
const dirtyWhere = (condition: string) => `
SELECT h.seq, h.id, h.org_id, h.day::text, h.run_seq, h.revision, h.finished, h.failure_class, h.flags, h.bytes, h.messages, h.sealed_at IS NOT NULL AS sealed,
  extract(epoch FROM h.received_at)::float8 * 1000 AS received_at, extract(epoch FROM h.last_at)::float8 * 1000 AS last_at,
  extract(epoch FROM now() - h.last_at)::float8 * 1000 AS quiet_ms, s.start, s.rollout_info, m.ledger_task
FROM (
  SELECT *, sum(bytes + ${MESSAGE_BYTES}::bigint * messages) OVER place AS upto, row_number() OVER place AS n FROM (
    SELECT seq, id, org_id, day, run_seq, revision, finished, failure_class, flags, bytes, messages, sealed_at, received_at, last_at FROM rollout_heads
    WHERE dirty AND run_seq IS NOT NULL AND ${condition} AND ($2 OR sealed_at IS NULL) AND NOT seq = ANY($3::bigint[])
    ORDER BY run_seq, seq LIMIT $1) page WINDOW place AS (ORDER BY run_seq, seq)
) h LEFT JOIN rollout_starts s ON s.rollout_seq = h.seq LEFT JOIN rollout_meta m ON m.rollout_seq = h.seq
WHERE h.upto <= $4 OR h.n = 1 ORDER BY h.run_seq, h.seq`;

function dirtyQuery(filter: DirtyFilter): { name: string; text: string; values: unknown[] } {
  if ('lane' in filter) {
    const text = dirtyWhere('run_seq > $5 AND run_seq <= $6 AND seq % $7 = $8');
    return { name: 'rollouts-dirty-lane', text, values: [filter.range.after, filter.range.until, filter.lane.of, filter.lane.number] };
  }
  if ('runSeq' in filter) return { name: 'rollouts-dirty-run', text: dirtyWhere('run_seq = $5'), values: [filter.runSeq] };
  return { name: 'rollouts-dirty-one', text: dirtyWhere('seq = $5'), values: [filter.seq] };
}

/** `sealed`: includes rollouts whose messages are in the object store. `bytes`: of messages; a larger rollout comes alone. */
export async function selectDirty(
  pool: pg.Pool,
  filter: DirtyFilter,
  { limit, bytes, sealed, without }: { limit: number; bytes: number; sealed: boolean; without: readonly string[] },
): Promise<DirtyHead[]> {
  const { name, text, values } = dirtyQuery(filter);
  const { rows } = await pool.query<DirtyHead>({ name, text, values: [limit, sealed, without, bytes, ...values] });
  return rows;
}

/** The newest run with changed rollouts; 0 = none. Plan: one probe of rollout_heads_dirty_idx (partial), backwards. */
export async function selectNewestDirty(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ run_seq: number }>({
    name: 'rollouts-dirty-newest',
    text: 'SELECT run_seq FROM rollout_heads WHERE dirty AND run_seq IS NOT NULL ORDER BY run_seq DESC LIMIT 1',
    values: [],
  });
  return rows[0]?.run_seq ?? 0;
}

/**
 * Lanes of narrow rows by rollout with work, of `lanes`, except rollouts of `without`; all of them while more rollouts wait than are read here,
 * so that a lane that makes no progress does not hide the others. Plan: Index Only Scan using rollout_heads_dirty_idx (partial), bounded.
 */
export async function selectDueLanes(pool: pg.Pool, lanes: number, without: readonly string[]): Promise<number[]> {
  const { rows } = await pool.query<{ lane: number }>({
    name: 'rollouts-due-lanes',
    text: `WITH first AS MATERIALIZED (
        SELECT seq FROM rollout_heads WHERE dirty AND run_seq IS NOT NULL AND NOT seq = ANY($2::bigint[]) ORDER BY run_seq, seq LIMIT 100)
      SELECT lane FROM generate_series(0, $1::int - 1) lane
      WHERE (SELECT count(*) FROM first) = 100 OR lane IN (SELECT seq % $1::int FROM first)`,
    values: [lanes, without],
  });
  return rows.map(({ lane }) => lane);
}

/** Whether more than `count` rollouts wait for derivation, except those of `without`. Plan: as `selectDueLanes`. */
export async function isBehind(pool: pg.Pool, count: number, without: readonly string[]): Promise<boolean> {
  const { rows } = await pool.query<{ behind: boolean }>({
    name: 'rollouts-behind',
    text: `SELECT EXISTS (SELECT FROM rollout_heads WHERE dirty AND run_seq IS NOT NULL AND NOT seq = ANY($2::bigint[])
      ORDER BY run_seq, seq OFFSET $1) AS behind`,
    values: [count, without],
  });
  return rows[0]!.behind;
}

export interface RunSettingsRow {
  seq: number;
  org_id: string;
  settings: JsonObject;
  max_turns: number | null;
}

/** Settings of runs and the largest number of turns in each. Plan: runs_seq_key; rollouts_run_turns_idx backwards, one row. */
export async function selectRunSettings(pool: Pick<pg.Pool, 'query'>, runSeqs: readonly number[]): Promise<Map<number, RunSettingsRow>> {
  const { rows } = await pool.query<RunSettingsRow>(
    `SELECT seq, org_id, settings, (SELECT turns FROM rollouts WHERE run_seq = runs.seq ORDER BY COALESCE(turns, -1) DESC LIMIT 1) AS max_turns
     FROM runs WHERE seq = ANY($1::int[])`,
    [runSeqs],
  );
  return new Map(rows.map((row) => [row.seq, row]));
}

/** A narrow row from the normaliser. Column names are those of the table. */
export interface NarrowRow {
  seq: string;
  id: string;
  revision: number;
  run_seq: number;
  env_id: number;
  task_id: number | null;
  task_index: number | null;
  step: number | null;
  policy_step: number | null;
  group_key: string | null;
  sample_idx: number | null;
  phase: number;
  reward: number | null;
  partial_reward: number | null;
  reward_positive: number | null;
  max_reward: number | null;
  last_reward: number | null;
  reward_reported: number | null;
  reward_steps: number;
  group_size: number | null;
  stop: number | null;
  failure: number | null;
  /** Fingerprint of the cause of its failure, and the index of the message that shows it. */
  cause: string | null;
  cause_index: number | null;
  cause_kind: number | null;
  cause_tool: string | null;
  turns: number | null;
  tool_turns: number | null;
  messages: number;
  calls: number;
  call_errors: number;
  tokens_out: number | null;
  tokens_tool: number | null;
  bytes: number;
  gaps: number;
  /** Milliseconds after which missing messages count as lost; null = no message is missing, or all missing ones are lost. */
  gaps_in: number | null;
  flags: number;
  provenance: number;
  normaliser: number;
  finished: boolean;
  split: string | null;
  received_at: number;
  last_at: number;
  rollout_name: string | null;
  source: string | null;
  model: string | null;
  author: string | null;
  stop_raw: string | null;
  sid: string | null;
  /** Id of the set of rules of its fields (dictionary.sql.ts), and the rule of `telemetry`. */
  rules_id: number;
  telemetry_rule: string | null;
  /** Its step must be inferred from the order of arrival. */
  infer: boolean;
  tools: { tool: string; calls: number; errors: number; result_bytes: number }[];
}

const NARROW = `seq, id, revision, run_seq, env_id, task_id, task_index, step, policy_step, group_key, sample_idx, phase, reward, partial_reward, reward_positive, max_reward,
  last_reward, reward_reported, reward_steps, group_size, stop, failure, cause, cause_index, cause_kind, cause_tool, turns, tool_turns, messages, calls, call_errors, tokens_out, tokens_tool, bytes, gaps, flags, provenance,
  normaliser, finished, split, received_at, last_at`;
/** An inferred value stays until the normaliser reports one: for a step that still needs inference ... */
const STAYS = 'excluded.step IS NULL AND r.provenance & $2 = $3';
/** ... and for a field that inference may only fill while it is not reported, now or before. Codes from 2 on are reported. */
const staysUnreported = (field: ProvenanceField) =>
  `${STAYS} AND (excluded.provenance | r.provenance) & ${2 << provenanceShift(field)} = 0`;
const INFERABLE = [
  { column: 'step', field: 'step', stays: STAYS },
  { column: 'group_key', field: 'group', stays: staysUnreported('group') },
  { column: 'phase', field: 'phase', stays: staysUnreported('phase') },
  { column: 'sample_idx', field: 'sample', stays: staysUnreported('sample') },
] as const;
/** Bits of the provenance that stay with their values. */
const KEPT_BITS = INFERABLE.map(({ field, stays }) => `CASE WHEN ${stays} THEN ${3 << provenanceShift(field)} ELSE 0 END`).join(' | ');

/** The ledger match (verify.sql.ts) sets this rule. It stays until the next match. */
const MATCHED = `m.telemetry_rule LIKE 'ledger%'`;
const LABELS = ['rules_id', 'rollout_name', 'source', 'model', 'author', 'stop_raw'].join(', ');
const of = (table: string, columns: string) => columns.replaceAll(/\w+/g, `${table}.$&`);
const SID = `COALESCE(excluded.sid, CASE WHEN ${MATCHED} THEN m.sid END)`;
const TELEMETRY_RULE = `CASE WHEN ${MATCHED} THEN m.telemetry_rule ELSE excluded.telemetry_rule END`;

/**
 * Writes narrow rows with their tools and labels, and marks the steps that they left and reached. It reads the old steps first, because a
 * row that the same statement has changed cannot be locked and would be skipped. A row from a newer revision stays. Heads that ingest holds
 * stay dirty (SKIP LOCKED, because the two lock in different orders). Erased rollouts are skipped: their heads are gone, and other heads
 * are locked until their rows are written. A run that is due is marked again, because inference may be clearing that mark without these
 * rows. A run is also due when an inferred step is reported, because the other inferred steps depend on it. Plan: primary keys throughout; rows of one call are written in seq order.
 */
const WRITE = `
WITH sent AS MATERIALIZED (
  SELECT f.seq, f.id, f.revision, f.run_seq, f.env_id, f.task_id, f.task_index, f.step, f.policy_step, f.group_key, f.sample_idx, f.phase, f.reward, f.partial_reward,
    f.reward_positive, f.max_reward, f.last_reward, f.reward_reported, f.reward_steps, f.group_size, f.stop, f.failure, f.cause, f.cause_index, f.cause_kind, f.cause_tool, f.turns, f.tool_turns, f.messages, f.calls, f.call_errors, f.tokens_out,
    f.tokens_tool, f.bytes, f.gaps, f.flags, f.provenance, f.normaliser, f.finished, f.split, to_timestamp(f.received_at / 1000) AS received_at,
    to_timestamp(f.last_at / 1000) AS last_at, f.rollout_name, f.source, f.model, f.author, f.stop_raw, f.sid, f.rules_id, f.telemetry_rule, f.tools, f.infer, f.gaps_in
  FROM jsonb_to_recordset($1::jsonb) AS f(seq bigint, id uuid, revision int, run_seq int, env_id int, task_id int, task_index int, step int, policy_step int,
    group_key bigint, sample_idx int, phase smallint, reward float8, partial_reward float8, reward_positive float8, max_reward float8, last_reward float8, reward_reported float8,
    reward_steps smallint, group_size smallint, stop smallint, failure smallint, cause bigint, cause_index int, cause_kind smallint, cause_tool text, turns int, tool_turns int, messages int, calls int, call_errors int, tokens_out int, tokens_tool int, bytes bigint,
    gaps int, flags int, provenance int, normaliser smallint, finished boolean, split text, received_at float8, last_at float8, rollout_name text,
    source text, model text, author text, stop_raw text, sid text, rules_id int, telemetry_rule text, tools jsonb, infer boolean, gaps_in float8)
), held AS MATERIALIZED (
  SELECT seq FROM rollout_heads WHERE seq = ANY(ARRAY(SELECT seq FROM sent)) ORDER BY id FOR KEY SHARE
), fact AS MATERIALIZED (
  SELECT * FROM sent WHERE seq IN (SELECT seq FROM held)
), old AS MATERIALIZED (
  SELECT seq, run_seq, phase, step, provenance FROM rollouts WHERE seq = ANY(ARRAY(SELECT seq FROM fact)) ORDER BY seq FOR UPDATE
), written AS (
  INSERT INTO rollouts AS r (${NARROW}) SELECT ${NARROW} FROM fact WHERE (SELECT count(*) FROM old) >= 0 ORDER BY seq
  ON CONFLICT (seq) DO UPDATE SET
    ${NARROW.split(',')
      .map((column) => column.trim())
      .filter((column) => !['seq', 'id', 'provenance', ...INFERABLE.map((inferable): string => inferable.column)].includes(column))
      .map((column) => `${column} = excluded.${column}`)
      .join(', ')},
    ${INFERABLE.map(({ column, stays }) => `${column} = CASE WHEN ${stays} THEN r.${column} ELSE excluded.${column} END`).join(', ')},
    provenance = (excluded.provenance & ~(${KEPT_BITS})) | (r.provenance & (${KEPT_BITS} | $4))
  WHERE r.revision <= excluded.revision
  RETURNING r.seq, r.run_seq, r.phase, r.step
), labelled AS (
  INSERT INTO rollout_meta AS m (rollout_seq, ${LABELS}, sid, telemetry_rule)
  SELECT seq, ${LABELS}, sid, telemetry_rule FROM fact JOIN written USING (seq) ORDER BY seq
  ON CONFLICT (rollout_seq) DO UPDATE SET (${LABELS}) = (${of('excluded', LABELS)}), sid = ${SID}, telemetry_rule = ${TELEMETRY_RULE}
  WHERE (${of('m', LABELS)}, m.sid, m.telemetry_rule) IS DISTINCT FROM (${of('excluded', LABELS)}, ${SID}, ${TELEMETRY_RULE})
), tool AS (
  INSERT INTO rollout_tools AS t (rollout_seq, run_seq, tool, calls, errors, result_bytes)
  SELECT f.seq, f.run_seq, x.tool, x.calls, x.errors, x.result_bytes
  FROM fact f JOIN written USING (seq) CROSS JOIN LATERAL jsonb_to_recordset(f.tools) AS x(tool text, calls int, errors int, result_bytes bigint) ORDER BY f.seq, x.tool
  ON CONFLICT (rollout_seq, tool) DO UPDATE SET calls = excluded.calls, errors = excluded.errors, result_bytes = excluded.result_bytes
), marked AS (
  INSERT INTO dirty_steps (run_seq, phase, step)
  SELECT DISTINCT run_seq, phase, COALESCE(step, -1) FROM (SELECT run_seq, phase, step FROM old UNION ALL SELECT run_seq, phase, step FROM written) s
), due AS (
  UPDATE runs SET inference_due = true WHERE seq IN (
    SELECT run_seq FROM fact WHERE infer UNION SELECT o.run_seq FROM old o JOIN fact f USING (seq) WHERE f.step IS NOT NULL AND o.provenance & $2 = $3)
), clean AS (
  SELECT h.seq, f.gaps_in FROM rollout_heads h JOIN fact f ON f.seq = h.seq AND f.revision = h.revision FOR UPDATE OF h SKIP LOCKED
), cleaned AS (
  UPDATE rollout_heads h SET dirty = false, gaps_at = now() + c.gaps_in * interval '1 millisecond' FROM clean c WHERE h.seq = c.seq
  RETURNING h.seq
)
SELECT (SELECT count(*)::int FROM written) AS written, (SELECT count(*)::int FROM cleaned) AS cleaned`;

/**
 * `mask`: the provenance bits of `step`. `inferred`: their value for an inferred step. `telemetry`: the bits that the ledger match sets and
 * the normaliser does not change.
 */
export async function writeNarrowRows(
  client: Pick<pg.Pool, 'query'>,
  narrowRows: readonly NarrowRow[],
  bits: { mask: number; inferred: number; telemetry: number },
): Promise<{ written: number; cleaned: number }> {
  const { rows } = await client.query<{ written: number; cleaned: number }>({
    name: 'rollouts-facts',
    text: WRITE,
    values: [JSON.stringify(narrowRows), bits.mask, bits.inferred, bits.telemetry],
  });
  return rows[0]!;
}

/**
 * Marks the rollouts of these runs, except those of `except`, to be normalised again, after new settings or a new maximum. Locks the heads of
 * all of them, in the order of ingest.
 */
export async function markRuns(client: Pick<pg.Pool, 'query'>, runSeqs: readonly number[], except: readonly string[] = []): Promise<void> {
  await client.query(
    `UPDATE rollout_heads SET dirty = true, revision = revision + 1 WHERE seq IN (
       SELECT seq FROM rollout_heads WHERE run_seq = ANY($1::int[]) ORDER BY id FOR UPDATE) AND NOT seq = ANY($2::bigint[])`,
    [runSeqs, except],
  );
}

/** Marks rollouts whose missing messages now count as lost. Returns their number. Plan: rollout_heads_gaps_at_idx (partial), bounded. */
export async function markOverdueGaps(pool: pg.Pool, limit: number): Promise<number> {
  const { rowCount } = await pool.query({
    name: 'rollouts-overdue-gaps',
    text: `UPDATE rollout_heads SET dirty = true, revision = revision + 1, gaps_at = NULL WHERE seq IN (
      SELECT seq FROM rollout_heads WHERE gaps_at <= now() ORDER BY gaps_at LIMIT $1 FOR UPDATE SKIP LOCKED)`,
    values: [limit],
  });
  return rowCount ?? 0;
}

/** Marks rows of an older normaliser, some at a time. Returns their number. Plan: rollouts by primary key, in seq order, bounded. */
export async function markOutdated(
  pool: pg.Pool,
  normaliser: number,
  afterSeq: string,
  limit: number,
): Promise<{ marked: number; last: string | null }> {
  const { rows } = await pool.query<{ marked: number; last: string | null }>(
    `WITH page AS MATERIALIZED (SELECT seq, normaliser FROM rollouts WHERE seq > $2 ORDER BY seq LIMIT $3),
     held AS MATERIALIZED (SELECT seq FROM rollout_heads WHERE seq IN (SELECT seq FROM page WHERE normaliser < $1) ORDER BY id FOR UPDATE),
     marked AS (UPDATE rollout_heads SET dirty = true, revision = revision + 1 WHERE seq IN (SELECT seq FROM held) RETURNING seq)
     SELECT (SELECT count(*)::int FROM marked) AS marked, (SELECT max(seq)::text FROM page) AS last`,
    [normaliser, afterSeq, limit],
  );
  return rows[0]!;
}

export interface UnsettledRun {
  seq: number;
  /** Rollouts that wait for derivation. */
  waiting: number;
  inference_due: boolean;
}

/**
 * The given runs whose figures do not contain all acknowledged events, except those of rollouts in `quarantined`. `limit`: waiting
 * rollouts are counted up to it. Plan: per run a bounded scan of rollout_heads_dirty_idx (partial) and one probe of dirty_steps_pkey.
 */
export async function selectUnsettled(
  pool: pg.Pool,
  runSeqs: readonly number[],
  quarantined: readonly string[],
  limit: number,
): Promise<UnsettledRun[]> {
  const { rows } = await pool.query<UnsettledRun>({
    name: 'rollouts-unsettled',
    text: `SELECT * FROM (
        SELECT r.seq, r.inference_due,
          (SELECT count(*)::int FROM (SELECT FROM rollout_heads h WHERE h.dirty AND h.run_seq = r.seq AND h.seq <> ALL($2::bigint[]) LIMIT $3) w) AS waiting,
          EXISTS (SELECT FROM dirty_steps d WHERE d.run_seq = r.seq) AS marked
        FROM runs r WHERE r.seq = ANY($1::int[])) u WHERE waiting > 0 OR inference_due OR marked ORDER BY seq`,
    values: [runSeqs, quarantined, limit],
  });
  return rows;
}

/** Pending rollouts of a run are counted up to this number. */
const MAX_PENDING = 10_000;

/**
 * Runs of these whose figures are behind, with the number of rollouts that wait; 0 = only figures of steps are computed again. Plan: per run
 * one bounded Index Only Scan of rollout_heads_dirty_idx (partial), and a probe of dirty_steps_pkey.
 */
export async function selectPending(pool: pg.Pool, runSeqs: readonly number[]): Promise<Map<number, number>> {
  const { rows } = await pool.query<{ seq: number; rollouts: number }>({
    name: 'rollouts-pending',
    text: `SELECT seq, rollouts FROM (
        SELECT r.seq, r.inference_due, EXISTS (SELECT FROM dirty_steps d WHERE d.run_seq = r.seq) AS marked,
          (SELECT count(*)::int FROM (SELECT FROM rollout_heads h WHERE h.dirty AND h.run_seq = r.seq LIMIT ${MAX_PENDING}) waiting) AS rollouts
        FROM runs r WHERE r.seq = ANY($1::int[])) u WHERE rollouts > 0 OR inference_due OR marked`,
    values: [runSeqs],
  });
  return new Map(rows.map(({ seq, rollouts }) => [seq, rollouts]));
}
