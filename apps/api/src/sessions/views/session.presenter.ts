import {
  type JsonObject,
  type OutputBlock,
  parseJson,
  type SessionCallView,
  type SessionHolder,
  type SessionLastCall,
  type SessionRecordingView,
  type SessionRow,
  type SessionView,
} from '@palestra/protocol';
import type { CallOutcome, Recording, SessionFailure } from '@palestra/session';
import type { CallRowRecord, SessionDetailRecord, SessionRowRecord } from './session-list.sql.ts';

/** Stored sessions and calls as responses: without secrets and the backend's reference. */

const iso = (time: Date | null): string | null => time?.toISOString() ?? null;

export function presentHolder(row: Pick<SessionRowRecord, 'user_name' | 'key_id' | 'key_name' | 'key_prefix'>): SessionHolder {
  const { key_id: id, key_name: name, key_prefix: prefix } = row;
  return { user: row.user_name, key: id === null ? null : { id, name: name ?? '', prefix: prefix ?? '' } };
}

export function presentLastCall(
  row: Pick<SessionRowRecord, 'last_tool' | 'last_state' | 'last_class' | 'last_started_at'>,
): SessionLastCall | null {
  if (row.last_tool === null || row.last_state === null || row.last_started_at === null) return null;
  return { tool: row.last_tool, started_at: row.last_started_at.toISOString(), state: row.last_state, failure_class: row.last_class };
}

function presentRecording(text: string | null): SessionRecordingView | null {
  if (text === null) return null;
  const { run, rolloutId, name, step, split, taskIndex, metadata } = parseJson(text) as Recording;
  return { run, rollout_id: rolloutId, name, step, split, task_index: taskIndex, metadata };
}

function presentFailure(text: string | null): SessionRow['failure'] {
  if (text === null) return null;
  const { code, detail } = parseJson(text) as SessionFailure;
  return { code, detail };
}

export function presentSession(row: SessionRowRecord): SessionRow {
  const hasQueued = row.queued_at !== null || row.admitted_at !== null;
  return {
    sid: row.sid,
    state: row.state,
    live: row.ended_at === null,
    environment: row.environment,
    environment_version: row.version_number,
    variant: row.env,
    owner_replica: row.owner_replica_id,
    holder: presentHolder(row),
    created_at: row.created_at.toISOString(),
    last_seen_at: row.last_seen_at.toISOString(),
    last_request_at: row.last_request_at.toISOString(),
    expires_at: iso(row.expires_at),
    ended_at: iso(row.ended_at),
    heartbeat_timeout_s: row.heartbeat_timeout_ms / 1_000,
    idle_timeout_s: row.idle_timeout_ms / 1_000,
    failure: presentFailure(row.failure),
    failure_class: row.failure_class,
    recording: presentRecording(row.recording),
    uploaded: row.uploaded_run === null || row.uploaded_id === null ? null : { run: row.uploaded_run, rollout_id: row.uploaded_id },
    forked_from: row.forked_from === null ? null : { sid: row.forked_from, at_call: row.forked_at_call ?? 0 },
    queue: hasQueued ? { queued_at: iso(row.queued_at), waiting: row.waiting, admitted_at: iso(row.admitted_at) } : null,
    num_calls: row.num_calls,
    last_call: presentLastCall(row),
  };
}

export function presentSessionDetail(row: SessionDetailRecord, deterministic: boolean): SessionView {
  const { num_calls: total, running, ok, policy, environment_failures: environment, infrastructure } = row;
  return {
    ...presentSession(row),
    task: row.task === null ? null : (parseJson(row.task) as JsonObject),
    deterministic,
    calls: { total, running, ok, policy, environment, infrastructure },
    total_reward: row.total_reward,
  };
}

interface Output {
  text: string | null;
  blocks: OutputBlock[] | null;
  code: string | null;
}

const textOf = (blocks: OutputBlock[]): string =>
  blocks.map((block) => (block.type === 'text' ? block.text : `[${block.type}]`)).join('\n');

/** The output of the tool, or its failure, from the stored JSON. */
function presentOutput({ state, result, truncated }: CallRowRecord): Output {
  if (result === null || state === 'running') return { text: null, blocks: null, code: null };
  if (truncated) return { text: result, blocks: null, code: null };
  const stored = parseJson(result) as JsonObject;
  if (state !== 'result') {
    const outcome = stored as Exclude<CallOutcome, { type: 'result' }>;
    return outcome.type === 'refused'
      ? { text: outcome.detail, blocks: null, code: outcome.code }
      : { text: outcome.message, blocks: null, code: null };
  }
  const output = stored['output'] as { blocks?: OutputBlock[] } | undefined;
  if (Array.isArray(output?.blocks)) return { text: textOf(output.blocks), blocks: output.blocks, code: null };
  return { text: typeof stored['error'] === 'string' ? stored['error'] : result, blocks: null, code: null };
}

export function presentCall(row: CallRowRecord): SessionCallView {
  return {
    task_id: row.task_id,
    seq: Number(row.seq),
    kind: row.kind,
    tool: row.tool,
    at_call: row.at_call,
    input: row.input,
    input_bytes: row.input_bytes,
    state: row.state,
    ...presentOutput(row),
    result_bytes: row.result_bytes,
    ok: row.ok,
    reason: row.reason,
    reward: row.reward,
    finished: row.finished === true,
    failure_class: row.failure_class,
    started_at: row.started_at.toISOString(),
    ended_at: iso(row.ended_at),
    latency_ms: row.ended_at === null ? null : row.ended_at.getTime() - row.started_at.getTime(),
    undelivered: row.undelivered,
    truncated: row.truncated === true,
  };
}
