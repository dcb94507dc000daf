import { PROVENANCE_FIELDS, type ProvenanceField, STOP_REASONS, type StopReason } from '@palestra/protocol';
import { ROLLOUT_FLAGS, type RolloutFlag } from './catalogue.ts';
import { likePattern } from './like.ts';
import type { QuerySchema } from './schema.ts';

/** A schema of plain tables, for tests: alias r is `rollouts`. The schema of the store is in apps/api/src/rollouts/rollout-query.ts. */

/** Bit of rollout_messages.flags: the tool failed. */
const MESSAGE_ERROR_BIT = 1;

const run = (column: string) => `(SELECT u.${column} FROM runs u WHERE u.id = r.run_id)`;
const task = (column: string) => `(SELECT t.${column} FROM tasks t WHERE t.id = r.task_id)`;
const meta = (column: string) => `(SELECT m.${column} FROM rollout_meta m WHERE m.rollout_seq = r.seq)`;
const group = (sql: string) => `(SELECT ${sql} FROM groups g WHERE g.run_id = r.run_id AND g.group_key = r.group_key)`;
const mean = 'g.sum / NULLIF(g.scored, 0)';
const variance = '(g.sumsq - g.sum * g.sum / g.scored) / (g.scored - 1)';
// The tolerance of zero variance: docs/reference/metrics.md#canonical-metrics.
const std = `CASE WHEN g.scored >= 2 THEN CASE WHEN g.max - g.min <= 1e-6 THEN 0 ELSE sqrt(GREATEST(${variance}, 0)) END END`;

export const defaultSchema: QuerySchema = {
  fields: {
    id: 'r.id',
    name: meta('rollout_name'),
    run_id: 'r.run_id',
    run_name: run('name'),
    env: '(SELECT e.name FROM rollout_envs e WHERE e.id = r.env_id)',
    env_version: meta('env_version'),
    split: task('split'),
    phase: 'r.phase',
    task_key: task('key'),
    task_index: task('index'),
    group_key: 'r.group_key',
    sample: 'r.sample_idx',
    model: meta('model'),
    step: 'r.step',
    policy_step: 'r.policy_step',
    reward: 'r.reward',
    turns: 'r.turns',
    calls: 'r.calls',
    call_errors: 'r.call_errors',
    msgs: 'r.msgs',
    tok: '(r.tok_out + COALESCE(r.tok_tool, 0))',
    bytes: 'r.bytes',
    gaps: 'r.gaps',
    dur: 'r.duration_ms',
    lat: 'r.latency_ms',
    received: 'r.received_at',
    stop: 'r.stop',
    cause: 'r.cause',
    state: 'r.state',
    flags: 'r.flags',
    prov: 'r.prov',
    group_n: group('g.n'),
    group_n_expected: group('g.n_expected'),
    group_mean: group(mean),
    group_std: group(std),
    group_pass: group('g.c::float8 / NULLIF(g.scored, 0)'),
    group_min: group('g.min'),
    group_max: group('g.max'),
  },
  stopCodes: Object.fromEntries(STOP_REASONS.map((stop, code) => [stop, code])) as Record<StopReason, number>,
  phaseCodes: { train: 0, eval: 1 },
  stateCodes: { live: 0, complete: 1, stale: 2, empty: 3 },
  flagBits: Object.fromEntries(ROLLOUT_FLAGS.map((flag, bit) => [flag, 1 << bit])) as Record<RolloutFlag, number>,
  provShifts: Object.fromEntries(PROVENANCE_FIELDS.map((field, index) => [field, 2 * index])) as Record<ProvenanceField, number>,
  tagExists: (test) => `EXISTS (SELECT 1 FROM rollout_tags x WHERE x.rollout_seq = r.seq AND ${test('x.tag')})`,
  annotationExists: (field, test) => `EXISTS (SELECT 1 FROM annotations a WHERE a.rollout_seq = r.seq AND ${test(`a.${field}`)})`,
  toolExists: (failed, test) => {
    const kind = failed ? `(mm.flags & ${MESSAGE_ERROR_BIT}) <> 0` : `mm.type = 'tool_call'`;
    return `EXISTS (SELECT 1 FROM rollout_messages mm WHERE mm.rollout_seq = r.seq AND ${kind} AND ${test('mm.name')})`;
  },
  textExists: ({ kind, text, ignoreCase, types }, bind) => {
    const ofTypes = types === null ? '' : ` AND mm.type = ANY(${bind(types)})`;
    const found =
      kind === 'phrase'
        ? `mm.tsv @@ phraseto_tsquery('simple', ${bind(text)})`
        : `mm.content ${ignoreCase ? 'ILIKE' : 'LIKE'} ${bind(likePattern(text))}`;
    return `EXISTS (SELECT 1 FROM rollout_messages mm WHERE mm.rollout_seq = r.seq${ofTypes} AND ${found})`;
  },
};
