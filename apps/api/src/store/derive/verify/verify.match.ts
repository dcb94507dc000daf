import { type ClaimedRollout, type LedgerMatch, matchLedger, type UploadedCall } from '@palestra/rollouts';
import type { CandidateSession } from './verify.ledger.ts';

/** A rollout that looks for its session. */
export interface Claim extends ClaimedRollout {
  seq: string;
  id: string;
  calls: readonly (UploadedCall & { callId: string | null })[];
}

/** Of sessions that share calls with a rollout so many are compared call by call: those that share most, the nearest first. */
const COMPARED = 50;

/**
 * Gives each session to one rollout. Those that name theirs come first, then those that agree with a session in everything, then
 * those that agree in part with what is left: several samples of one task run at the same time and begin alike. By `seq`.
 */
export function assignSessions(claims: readonly Claim[], sessions: readonly CandidateSession[]): Map<string, LedgerMatch> {
  const index = new SessionIndex(sessions);
  const found = new Map<string, LedgerMatch>();
  const take = (claim: Claim, match: LedgerMatch) => {
    found.set(claim.seq, match);
    const session = match.sid === null ? undefined : index.bySid.get(match.sid);
    if (session && session.recordedAs !== claim.id) session.taken = true;
  };
  for (const claim of claims) {
    if (claim.sessionId === null) continue;
    const named = index.bySid.get(claim.sessionId);
    take(claim, named?.recordedAs === claim.id ? recordedMatch(claim, named) : matchLedger(claim, named ? [named] : []));
  }
  const unnamed = claims.filter(({ sessionId }) => sessionId === null).toSorted((a, b) => (a.startedAt ?? 0) - (b.startedAt ?? 0));
  const nearMisses: Claim[] = [];
  for (const claim of unnamed) {
    const match = matchLedger(claim, index.candidates(claim));
    if (match.verdict === 'verified') take(claim, match);
    else nearMisses.push(claim);
  }
  for (const claim of nearMisses) take(claim, matchLedger(claim, index.candidates(claim)));
  return found;
}

/** Its events were written from the ledger: ids of calls are those of the ledger. */
function recordedMatch(claim: Claim, session: CandidateSession): LedgerMatch {
  const recorded = new Map(session.calls.map((call) => [call.taskId, call]));
  const calls = claim.calls.flatMap(({ index, callId }) => {
    const call = recorded.get(callId ?? '');
    return call ? [{ index, ledgerSeq: call.seq, durationMs: call.durationMs, failureClass: call.failureClass }] : [];
  });
  return { verdict: 'verified', sid: session.sid, confidence: 1, provenance: 'reported', calls, differences: [] };
}

/** Sessions by their calls: comparing a thousand rollouts with a thousand sessions each would be a million alignments. */
class SessionIndex {
  readonly bySid = new Map<string, CandidateSession>();
  readonly #byCall = new Map<string, Set<CandidateSession>>();

  constructor(sessions: readonly CandidateSession[]) {
    for (const session of sessions) {
      this.bySid.set(session.sid, session);
      for (const call of session.calls) {
        const own = this.#byCall.get(keyOf(call));
        if (own) own.add(session);
        else this.#byCall.set(keyOf(call), new Set([session]));
      }
    }
  }

  candidates(claim: Claim): CandidateSession[] {
    const shared = new Map<CandidateSession, number>();
    for (const key of new Set(claim.calls.map(keyOf))) {
      for (const session of this.#byCall.get(key) ?? []) if (!session.taken) shared.set(session, (shared.get(session) ?? 0) + 1);
    }
    const distance = (session: CandidateSession) => Math.abs((session.lastCallAt ?? 0) - (claim.startedAt ?? 0));
    return [...shared]
      .toSorted(([a, m], [b, n]) => n - m || distance(a) - distance(b))
      .slice(0, COMPARED)
      .map(([session]) => session);
  }
}

const keyOf = ({ tool, argsHash }: { tool: string; argsHash: string }) => `${argsHash} ${tool}`;
