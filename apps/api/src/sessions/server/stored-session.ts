import type pg from 'pg';
import type { StoredSession } from '../http/protocol.ts';
import { selectCalls, selectSession, type SessionDetailRecord } from '../views/session-list.sql.ts';
import { presentCall, presentSessionDetail } from '../views/session.presenter.ts';

/** How many calls are searched for the failed one. */
const CALLS = 200;

/** A session of the organisation with the totals of its calls; null if it has none with this SID. */
export async function readStoredSession(pool: pg.Pool, orgId: string, sid: string): Promise<StoredSession | null> {
  const row = sid.includes('\0') ? null : await selectSession(pool, orgId, sid);
  if (row === null) return null;
  const { state, live, total_reward: totalReward } = presentSessionDetail(row, false);
  return { state, isLive: live, totalReward, failure: await failureOf(pool, row) };
}

async function failureOf(pool: pg.Pool, row: SessionDetailRecord): Promise<StoredSession['failure']> {
  const { failure, failure_class: failureClass, calls } = presentSessionDetail(row, false);
  if (calls.environment + calls.infrastructure > 0) {
    const failed = (await selectCalls(pool, row.sid, 0, CALLS)).find((call) => isFailure(call.failure_class));
    if (failed !== undefined) {
      const { code, text } = presentCall(failed);
      return { failureClass: failed.failure_class!, code, detail: text ?? 'A call failed.' };
    }
    return { failureClass: calls.infrastructure > 0 ? 'infrastructure' : 'environment', code: null, detail: 'A call failed.' };
  }
  if (!isFailure(failureClass)) return null;
  return { failureClass: failureClass!, code: failure?.code ?? null, detail: failure?.detail ?? 'The session failed.' };
}

const isFailure = (failureClass: string | null): boolean => failureClass === 'environment' || failureClass === 'infrastructure';
