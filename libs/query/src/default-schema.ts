import { type MessageType, PROVENANCE_FIELDS, type ProvenanceField, STOP_REASONS, type StopReason } from '@palestra/protocol';
import { ROLLOUT_FLAGS, type RolloutFlag } from './catalogue.ts';
import { likePattern } from './like.ts';
import type { QuerySchema } from './schema.ts';

/** The one place that knows the tables' names: alias r is `rollouts`, the others come by the joins below. */

const MESSAGE_TYPE_CODES: Record<MessageType, string> = {
  reasoning: 'reasoning',
  tool_call: 'tool_call',
  tool_result: 'tool_result',
  user_message: 'user_message',
  assistant_message: 'assistant_message',
  system_message: 'system_message',
};
/** Of rollout_messages.flags: the result of a tool that failed. */
const MESSAGE_ERROR_BIT = 1;

const group = (sql: string) => ({ sql, join: 'group' }) as const;
const mean = 'g.sum / NULLIF(g.scored, 0)';
const variance = '(g.sumsq - g.sum * g.sum / g.scored) / (g.scored - 1)';
// Sums leave a remainder where all rewards are equal; the tolerance is the one of zero variance (dashboard.md 3.1). Without ELSE, because
// GREATEST makes 0 of a rollout that has no group.
const std = `CASE WHEN g.scored >= 2 THEN CASE WHEN g.max - g.min <= 1e-6 THEN 0 ELSE sqrt(GREATEST(${variance}, 0)) END END`;

export const defaultSchema: QuerySchema = {
  fields: {
    id: { sql: 'r.id' },
    name: { sql: 'm.rollout_name', join: 'meta' },
    run_id: { sql: 'r.run_id' },
    run_name: { sql: 'u.name', join: 'run' },
    env: { sql: 'e.name', join: 'env' },
    split: { sql: 't.split', join: 'task' },
    phase: { sql: 'r.phase' },
    task_key: { sql: 't.key', join: 'task' },
    task_index: { sql: 't.index', join: 'task' },
    group_key: { sql: 'r.group_key' },
    sample: { sql: 'r.sample_idx' },
    model: { sql: 'm.model', join: 'meta' },
    step: { sql: 'r.step' },
    policy_step: { sql: 'r.policy_step' },
    reward: { sql: 'r.reward' },
    turns: { sql: 'r.turns' },
    calls: { sql: 'r.calls' },
    call_errors: { sql: 'r.call_errors' },
    msgs: { sql: 'r.msgs' },
    tok: { sql: '(r.tok_out + COALESCE(r.tok_tool, 0))' },
    bytes: { sql: 'r.bytes' },
    gaps: { sql: 'r.gaps' },
    dur: { sql: 'r.duration_ms' },
    lat: { sql: 'r.latency_ms' },
    received: { sql: 'r.received_at' },
    stop: { sql: 'r.stop' },
    state: { sql: 'r.state' },
    flags: { sql: 'r.flags' },
    prov: { sql: 'r.prov' },
    group_n: group('g.n'),
    group_n_expected: group('g.n_expected'),
    group_mean: group(`(${mean})`),
    group_std: group(`(${std})`),
    group_pass: group('(g.c::float8 / NULLIF(g.scored, 0))'),
    group_min: group('g.min'),
    group_max: group('g.max'),
  },
  joins: {
    run: 'LEFT JOIN runs u ON u.id = r.run_id',
    task: 'LEFT JOIN tasks t ON t.id = r.task_id',
    env: 'LEFT JOIN rollout_envs e ON e.id = r.env_id',
    meta: 'LEFT JOIN rollout_meta m ON m.rollout_seq = r.seq',
    group: 'LEFT JOIN groups g ON g.run_id = r.run_id AND g.group_key = r.group_key',
  },
  stopCodes: Object.fromEntries(STOP_REASONS.map((stop, code) => [stop, code])) as Record<StopReason, number>,
  phaseCodes: { train: 0, eval: 1 },
  stateCodes: { live: 0, complete: 1, stale: 2, empty: 3 },
  flagBits: Object.fromEntries(ROLLOUT_FLAGS.map((flag, bit) => [flag, 1 << bit])) as Record<RolloutFlag, number>,
  provShifts: Object.fromEntries(PROVENANCE_FIELDS.map((field, index) => [field, 2 * index])) as Record<ProvenanceField, number>,
  tagExists: (test) => `EXISTS (SELECT 1 FROM rollout_tags x WHERE x.rollout_seq = r.seq AND ${test('x.tag')})`,
  annotationExists: (field, test) => `EXISTS (SELECT 1 FROM annotations a WHERE a.rollout_seq = r.seq AND ${test(`a.${field}`)})`,
  toolExists: (failed, test) => {
    const kind = failed ? `(mm.flags & ${MESSAGE_ERROR_BIT}) <> 0` : `mm.type = '${MESSAGE_TYPE_CODES.tool_call}'`;
    return `EXISTS (SELECT 1 FROM rollout_messages mm WHERE mm.rollout_seq = r.seq AND ${kind} AND ${test('mm.name')})`;
  },
  textExists: ({ kind, text, ignoreCase, types }, bind) => {
    const place = types === null ? '' : ` AND mm.type = ANY(${bind(types.map((type) => MESSAGE_TYPE_CODES[type]))})`;
    const found =
      kind === 'phrase'
        ? `mm.tsv @@ phraseto_tsquery('simple', ${bind(text)})`
        : `mm.content ${ignoreCase ? 'ILIKE' : 'LIKE'} ${bind(likePattern(text))}`;
    return `EXISTS (SELECT 1 FROM rollout_messages mm WHERE mm.rollout_seq = r.seq${place} AND ${found})`;
  },
};
