import { canonicalArgsHash, type LedgerCall, type LedgerSession, taskKeyOf } from '@palestra/rollouts';
import { type JsonObject, parseJson } from '@palestra/protocol';
import type { LedgerRow, SessionRow } from './verify.sql.ts';

/** A session for the comparison with rollouts. */
export interface CandidateSession extends LedgerSession {
  open: boolean;
  /** The outcome of a call is not written yet, or lost. */
  unsettled: boolean;
  /** Id of the rollout that was recorded from it. */
  recordedAs: string | null;
  calls: (LedgerCall & { taskId: string })[];
}

export function candidateOf(session: SessionRow, rows: readonly LedgerRow[]): CandidateSession {
  const recording = objectOf(session.recording);
  const ended = rows.map(({ ended_at }) => ended_at).filter((at) => at !== null);
  return {
    sid: session.sid,
    environment: session.environment,
    ...taskOf(session, recording),
    lastCallAt: ended.length > 0 ? Math.max(...ended) : null,
    open: session.open,
    unsettled: ended.length < rows.length,
    recordedAs: typeof recording.rolloutId === 'string' ? recording.rolloutId : null,
    calls: rows.map((row) => callOf(row, session.open)),
  };
}

function taskOf(session: SessionRow, recording: JsonObject): Pick<LedgerSession, 'split' | 'taskIndex' | 'taskKey'> {
  const task = objectOf(session.task);
  if (task.kind === 'index') return { split: textOf(task.split), taskIndex: indexOf(task.index), taskKey: null };
  const start = { environment: session.environment, task_spec: task.spec ?? null } as JsonObject;
  return { split: textOf(recording.split), taskIndex: indexOf(recording.taskIndex), taskKey: taskKeyOf(start, {}, null, null).key };
}

/** The outcome of a call that was lost with its process is an infrastructure failure. */
function callOf(row: LedgerRow, open: boolean): CandidateSession['calls'][number] {
  const lost = row.ended_at === null && !open;
  return {
    seq: Number(row.seq),
    taskId: row.task_id,
    tool: row.tool,
    argsHash: canonicalArgsHash(row.input),
    reward: row.reward,
    finished: row.finished === true,
    durationMs: row.duration_ms,
    failureClass: lost ? 'infrastructure' : row.failure_class,
  };
}

function objectOf(text: string | null): JsonObject {
  const value = text === null ? null : parseJson(text);
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
}
const textOf = (value: unknown) => (typeof value === 'string' ? value : null);
/** An index that a rollout's row can hold. */
const indexOf = (value: unknown) => {
  const index = value === null || value === undefined ? NaN : Number(value);
  return Number.isInteger(index) && index >= 0 && index <= 2_147_483_647 ? index : null;
};
