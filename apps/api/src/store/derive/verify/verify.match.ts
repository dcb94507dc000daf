import { type ClaimedRollout, type LedgerMatch, matchLedger, type UploadedCall } from '@palestra/rollouts';
import type { CandidateSession } from './verify.ledger.ts';

/** A rollout without a known session. */
export interface Claim extends ClaimedRollout {
  seq: string;
  id: string;
  calls: readonly (UploadedCall & { callId: string | null })[];
}

/** Maximum of sessions that are compared call by call: those with most shared calls, then the nearest in time. */
const MAX_COMPARED = 50;

/**
 * Assigns each session to one rollout, by `seq`: first rollouts that name their session, then those that agree completely, then those that
 * agree partly. Several samples of one task run at the same time and begin alike.
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

/** The rollout was recorded from the ledger, so its call ids are those of the ledger. */
function recordedMatch(claim: Claim, session: CandidateSession): LedgerMatch {
  const recorded = new Map(session.calls.map((call) => [call.taskId, call]));
  const calls = claim.calls.flatMap(({ index, callId }) => {
    const call = recorded.get(callId ?? '');
    return call ? [{ index, ledgerSeq: call.seq, durationMs: call.durationMs, failureClass: call.failureClass }] : [];
  });
  return { verdict: 'verified', sid: session.sid, confidence: 1, provenance: 'reported', calls, differences: [], task: null };
}

/** Sessions by their calls, because comparing a thousand rollouts with a thousand sessions would need a million alignments. */
class SessionIndex {
  readonly bySid = new Map<string, CandidateSession>();
  readonly #byCall = new Map<string, Set<CandidateSession>>();

  constructor(sessions: readonly CandidateSession[]) {
    for (const session of sessions) {
      this.bySid.set(session.sid, session);
      for (const call of session.calls) {
        const sessionsOfCall = this.#byCall.get(keyOf(call));
        if (sessionsOfCall) sessionsOfCall.add(session);
        else this.#byCall.set(keyOf(call), new Set([session]));
      }
    }
  }

  candidates(claim: Claim): CandidateSession[] {
    const shared = new Map<CandidateSession, number>();
    for (const key of new Set(claim.calls.map(keyOf))) {
      for (const session of this.#byCall.get(key) ?? []) shared.set(session, (shared.get(session) ?? 0) + 1);
    }
    const distance = (session: CandidateSession) => Math.abs((session.lastCallAt ?? 0) - (claim.startedAt ?? 0));
    return (
      [...shared]
        // Sessions of other rollouts come last: they only show that a match is ambiguous.
        .toSorted(([a, m], [b, n]) => Number(a.taken ?? false) - Number(b.taken ?? false) || n - m || distance(a) - distance(b))
        .slice(0, MAX_COMPARED)
        .map(([session]) => session)
    );
  }
}

const keyOf = ({ tool, argsHash }: { tool: string; argsHash: string }) => `${argsHash} ${tool}`;
