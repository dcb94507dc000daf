import { fingerprintToBigint, type Provenance, PROVENANCES, ROLLOUT_STATES, STOP_REASONS } from '@palestra/protocol';
import { createHash } from 'node:crypto';
import { type QueryGroup, type QueryMessage, type QueryRow, ROLLOUT_FLAGS } from '@palestra/query';
import pg from 'pg';
import { inject } from 'vitest';
import { defaultSchema } from '../../../libs/query/src/schema.fixture.ts';

/** Thirty-six varied rollouts, in memory and in the tables of a separate PostgreSQL schema. */
export const NOW = Date.parse('2026-11-20T12:00:00Z');
const HOUR = 3_600_000;

const uuid = (text: string) =>
  createHash('sha256')
    .update(text)
    .digest('hex')
    .slice(0, 32)
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');

export const RUNS = { skyrl: uuid('skyrl'), slime: uuid('slime') };
/** A fingerprint of each class, and one that is negative as a `bigint`. */
export const CAUSES = ['00000000000000a1', '00000000000000a2', 'f0000000000000a3'] as const;
const rewards = [0, 1, null, 0.5, 1, 0.25, -1, 1];
const contents = [
  'Traceback (most recent call last): ValueError at line 3',
  'I give up, the butler did it.',
  'the Butler was seen in the library',
  '100% sure_thing; DROP TABLE rollouts',
  "it's O'Neil's \\ back\\slash \"quoted\" (text)",
  'Größe ändern: naïve café',
];

function messagesOf(index: number): QueryMessage[] {
  if (index % 12 === 11) return [];
  const content = (offset: number) => contents[(index + offset) % contents.length]!;
  const tool = ['bash', 'search', 'accuse', "o'tool"][index % 4]!;
  return [
    { type: 'system_message', name: null, failed: false, content: 'You are a detective.' },
    { type: 'user_message', name: null, failed: false, content: content(0) },
    ...(index % 3 === 0 ? [{ type: 'reasoning', name: null, failed: false, content: content(1) } as const] : []),
    { type: 'tool_call', name: tool, failed: false, content: `{"q":"${index}"}` },
    { type: 'tool_result', name: tool, failed: index % 5 === 0, content: index % 7 === 0 ? null : content(2) },
    { type: 'assistant_message', name: null, failed: false, content: content(3) },
  ];
}

function baseRow(index: number): QueryRow {
  const level = (offset: number): Provenance => PROVENANCES[(index + offset) % 4]!;
  const messages = messagesOf(index);
  const known = index % 9 !== 8;
  return {
    id: uuid(`rollout ${index}`),
    name: index % 10 === 9 ? null : `whodunit-${index % 2 === 0 ? 'train' : 'test'}-${index}`,
    runId: index < 24 ? RUNS.skyrl : RUNS.slime,
    runName: index < 24 ? 'skyrl-openreward' : 'null',
    env: index % 11 === 10 ? null : ['palestra/whodunit', 'palestra/echo', 'acme/100%_sure'][index % 3]!,
    envVersion: index % 5 === 4 ? null : ['3', '2026.1-rc', 'null'][index % 3]!,
    split: known ? ['train', 'test'][index % 2]! : null,
    phase: (['train', 'eval', 'unknown'] as const)[index % 3]!,
    taskKey: known ? `task-${index % 5}` : null,
    taskIndex: known ? index % 5 : null,
    groupKey: index % 13 === 12 ? null : String(9_007_199_254_740_993n + BigInt(Math.floor(index / 4))),
    sample: index % 4 === 3 ? null : index % 4,
    model: index % 6 === 5 ? null : ['Qwen2.5-3B', 'qwen3-8b', 'gpt-oss'][index % 3]!,
    step: index % 8 === 7 ? null : 100 + index,
    policyStep: index % 2 === 0 ? 99 + index : null,
    reward: rewards[index % rewards.length]!,
    turns: index % 7 === 6 ? null : index % 11,
    calls: messages.length === 0 ? 0 : 1,
    callErrors: messages.filter(({ failed }) => failed).length,
    msgs: messages.length,
    tokens: index % 5 === 4 ? null : index * 500,
    bytes: index * 1_000,
    gaps: index % 6 === 0 ? 2 : 0,
    durationMs: index % 4 === 1 ? null : index * 10_000,
    latencyMs: index % 3 === 1 ? null : index * 100,
    receivedAt: NOW - index * 5 * HOUR,
    stop: STOP_REASONS[index % STOP_REASONS.length]!,
    cause: index % 4 === 0 ? null : CAUSES[index % CAUSES.length]!,
    state: ROLLOUT_STATES[index % ROLLOUT_STATES.length]!,
    flags: ROLLOUT_FLAGS.filter((_, bit) => ((index * 5) >> bit) % 2 === 1),
    prov: { step: level(0), group: level(1), sample: level(2), reward: level(3), stop: level(0), turns: level(1), telemetry: level(2) },
    group: null,
    tags: [...(index % 4 === 0 ? ['to review'] : []), ...(index % 6 === 0 ? ['gold', 'null'] : [])],
    annotations:
      index % 5 === 2
        ? [
            { verdict: index % 2 === 0 ? 'exploit' : null, note: index % 3 === 0 ? '' : 'Format ONLY, 100% sure_', author: 'ana' },
            { verdict: 'bad', note: null, author: index % 2 === 0 ? 'bo' : null },
          ]
        : [],
    messages,
  };
}

function groupOf(members: QueryRow[], nExpected: number | null): QueryGroup {
  const scored = members.flatMap(({ reward }) => (reward === null ? [] : [reward]));
  return {
    n: members.length,
    nExpected,
    scored: scored.length,
    successes: scored.filter((reward) => reward >= 1).length,
    sum: scored.reduce((sum, reward) => sum + reward, 0),
    sumsq: scored.reduce((sum, reward) => sum + reward * reward, 0),
    min: scored.length === 0 ? null : Math.min(...scored),
    max: scored.length === 0 ? null : Math.max(...scored),
  };
}

export function makeRows(): QueryRow[] {
  const rows = Array.from({ length: 36 }, (_, index) => baseRow(index));
  // A group of equal rewards, whose sums of 0.1 leave a remainder, and a group without a score.
  for (const index of [16, 17, 18]) rows[index]!.reward = 0.1;
  rows[19]!.reward = 0.1 + 5e-7;
  for (const index of [20, 21, 22, 23]) rows[index]!.reward = null;
  for (const [position, row] of rows.entries()) {
    const members = rows.filter(({ groupKey, runId }) => groupKey !== null && groupKey === row.groupKey && runId === row.runId);
    if (members.length > 0)
      row.group = groupOf(members, Number(BigInt(row.groupKey!) % 3n) === 0 ? null : 4 + (Math.floor(position / 4) % 2));
  }
  return rows;
}

const DDL = `
  CREATE TABLE runs (id uuid PRIMARY KEY, name text);
  CREATE TABLE tasks (id int PRIMARY KEY, key text, env text, split text, index int);
  CREATE TABLE rollout_envs (id int PRIMARY KEY, name text);
  CREATE TABLE groups (run_id uuid, group_key bigint, n int, n_expected int, scored int, c int, sum float8, sumsq float8, min float8, max float8,
    PRIMARY KEY (run_id, group_key));
  CREATE TABLE rollouts (org_id uuid, id uuid, seq bigint PRIMARY KEY, run_id uuid, step int, policy_step int, group_key bigint, sample_idx int,
    task_id int, env_id int, phase smallint, reward float8, stop smallint, cause bigint, state smallint, turns int, calls int, call_errors int, msgs int,
    tok_out int, tok_tool int, bytes bigint, gaps int, flags int, prov int, started_at timestamptz, received_at timestamptz,
    duration_ms bigint, latency_ms bigint);
  CREATE TABLE rollout_meta (rollout_seq bigint PRIMARY KEY, rollout_name text, source text, model text, env_version text);
  CREATE TABLE rollout_tags (rollout_seq bigint, tag text);
  CREATE TABLE annotations (rollout_seq bigint, verdict text, note text, author text);
  CREATE TABLE rollout_messages (rollout_seq bigint, day date, index int, type text, name text, flags int, content text,
    tsv tsvector GENERATED ALWAYS AS (to_tsvector('simple', COALESCE(content, ''))) STORED)`;

type Insert = (table: string, values: Record<string, unknown>) => Promise<unknown>;

async function insertRow(insert: Insert, row: QueryRow, seq: number): Promise<void> {
  const flags = row.flags.reduce((sum, flag) => sum | defaultSchema.flagBits[flag], 0);
  const prov = Object.entries(row.prov).reduce(
    (sum, [field, level]) => sum | (PROVENANCES.indexOf(level) << defaultSchema.provShifts[field as 'step']),
    0,
  );
  await insert('tasks', { id: seq, key: row.taskKey, env: row.env, split: row.split, index: row.taskIndex });
  await insert('rollout_envs', { id: seq, name: row.env });
  await insert('rollout_meta', {
    rollout_seq: seq,
    rollout_name: row.name,
    source: 'generic',
    model: row.model,
    env_version: row.envVersion,
  });
  await insert('rollouts', {
    org_id: RUNS.skyrl,
    id: row.id,
    seq,
    run_id: row.runId,
    step: row.step,
    policy_step: row.policyStep,
    group_key: row.groupKey,
    sample_idx: row.sample,
    task_id: row.taskKey === null ? null : seq,
    env_id: row.env === null ? null : seq,
    phase: row.phase === 'unknown' ? null : defaultSchema.phaseCodes[row.phase],
    reward: row.reward,
    // Both spellings of "not known".
    stop: row.stop === 'unknown' && seq % 2 === 0 ? null : defaultSchema.stopCodes[row.stop],
    cause: row.cause === null ? null : fingerprintToBigint(row.cause),
    state: defaultSchema.stateCodes[row.state],
    turns: row.turns,
    calls: row.calls,
    call_errors: row.callErrors,
    msgs: row.msgs,
    tok_out: row.tokens === null ? null : row.tokens - (seq % 2) * 100,
    tok_tool: seq % 2 === 0 ? null : 100,
    bytes: row.bytes,
    gaps: row.gaps,
    flags,
    prov,
    started_at: new Date(row.receivedAt - 1_000),
    received_at: new Date(row.receivedAt),
    duration_ms: row.durationMs,
    latency_ms: row.latencyMs,
  });
  for (const tag of row.tags) await insert('rollout_tags', { rollout_seq: seq, tag });
  for (const annotation of row.annotations) await insert('annotations', { rollout_seq: seq, ...annotation });
  for (const [index, { type, name, failed, content }] of row.messages.entries())
    await insert('rollout_messages', { rollout_seq: seq, day: '2026-11-20', index, type, name, flags: failed ? 1 : 0, content });
}

export interface QueryWorld {
  rows: QueryRow[];
  client: pg.Client;
  close(): Promise<void>;
}

export async function startQueryWorld(): Promise<QueryWorld> {
  const client = new pg.Client({ connectionString: `${inject('postgresUrl')}/postgres` });
  await client.connect();
  const schema = `query_${process.pid}_${Math.floor(Math.random() * 1e9)}`;
  await client.query(`CREATE SCHEMA ${schema}; SET search_path TO ${schema}; ${DDL}`);
  const insert: Insert = (table, values) => {
    const columns = Object.keys(values);
    const marks = columns.map((_, index) => `$${index + 1}`);
    return client.query(`INSERT INTO ${table} (${columns.join(', ')}) VALUES (${marks.join(', ')})`, Object.values(values));
  };
  const rows = makeRows();
  await insert('runs', { id: RUNS.skyrl, name: 'skyrl-openreward' });
  await insert('runs', { id: RUNS.slime, name: 'null' });
  const groups = new Map(rows.filter(({ group }) => group !== null).map((row) => [`${row.runId} ${row.groupKey}`, row]));
  for (const { runId, groupKey, group } of groups.values()) {
    const { n, nExpected, scored, successes, sum, sumsq, min, max } = group!;
    await insert('groups', { run_id: runId, group_key: groupKey, n, n_expected: nExpected, scored, c: successes, sum, sumsq, min, max });
  }
  for (const [index, row] of rows.entries()) await insertRow(insert, row, index);
  return {
    rows,
    client,
    async close() {
      await client.query(`DROP SCHEMA ${schema} CASCADE`);
      await client.end();
    },
  };
}
