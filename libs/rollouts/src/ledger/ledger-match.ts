import type { Provenance, Verification } from '@palestra/protocol';
import { align, type Alignment, type LedgerCall, type LedgerDifference, type UploadedCall } from './ledger-alignment.ts';

/** The fields of a rollout that are compared with a session. null means not known. */
export interface ClaimedRollout {
  environment: string | null;
  split: string | null;
  taskIndex: number | null;
  /** `NormalisedRollout.taskKey`; compared if both sides have a key of the same form and no index. */
  taskKey: string | null;
  sessionId: string | null;
  /** Timestamp of its start event, milliseconds since the epoch. */
  startedAt: number | null;
  /** In order. */
  calls: readonly UploadedCall[];
}

/** A session of the same organisation. */
export interface LedgerSession {
  sid: string;
  environment: string | null;
  split: string | null;
  taskIndex: number | null;
  taskKey: string | null;
  /** Milliseconds since the epoch; null before the first call. */
  lastCallAt: number | null;
  /** Another rollout matched it. It is only a candidate for a rollout that names it. */
  taken?: boolean;
  /** In order. */
  calls: readonly LedgerCall[];
}

export interface MatchedCall {
  /** Message index of the uploaded call. */
  index: number;
  ledgerSeq: number;
  durationMs: number | null;
  failureClass: string | null;
}

export interface LedgerMatch {
  /** `verified`: tools, arguments, rewards and end agree. `partial`: the session is named or half of the calls match, but not all agree. */
  verdict: Verification;
  sid: string | null;
  /** Probability, 0 to 1, that this is the session. Below 1 the latency may be that of a sibling with equal calls. */
  confidence: number;
  provenance: Provenance;
  calls: MatchedCall[];
  /** At most `MAX_DIFFERENCES`; empty for `verified`. */
  differences: LedgerDifference[];
  /** Task of all sessions that it can be; `ambiguous` if they have different tasks. null: no session, or one without a task index. */
  task: LedgerTask | 'ambiguous' | null;
}

/** The task that a session was created for. */
export interface LedgerTask {
  split: string | null;
  index: number;
}

export const MAX_DIFFERENCES = 100;
/** A session whose last call is further away from the start of the rollout is not a candidate. */
const NEAR_MS = 24 * 3_600_000;

const NOT_FOUND: LedgerMatch = {
  verdict: 'unverified',
  sid: null,
  confidence: 0,
  provenance: 'unknown',
  calls: [],
  differences: [],
  task: null,
};

interface Compared {
  session: LedgerSession;
  alignment: Alignment;
  distanceMs: number;
}

/**
 * Finds the session of a rollout (docs/reference/metrics.md#ledger-match): the session that the rollout names, if it is a candidate; else
 * a session of its environment and task within a day. One full match is certain. Of several the nearest in time is taken with confidence
 * 0.5 to 0.9, which grows with its lead over the next. A rollout without calls is matched by name only.
 */
export function matchLedger(rollout: ClaimedRollout, candidates: readonly LedgerSession[]): LedgerMatch {
  const named = rollout.sessionId === null ? undefined : candidates.find(({ sid }) => sid === rollout.sessionId);
  if (named !== undefined) return matchNamed(rollout, compare(rollout, named));
  if (rollout.calls.length === 0) return NOT_FOUND;
  const compared = candidates.filter((session) => isCandidate(rollout, session)).map((session) => compare(rollout, session));
  compared.sort((a, b) => a.distanceMs - b.distanceMs || (a.session.sid < b.session.sid ? -1 : 1));
  const equal = compared.filter(({ alignment }) => alignment.differences.length === 0);
  const full = equal.filter(isFree);
  if (full.length > 0) return { ...found('verified', full[0]!, confidenceOf(full)), task: commonTask(equal) };
  return bestPart(rollout, compared);
}

const isFree = ({ session }: Compared): boolean => session.taken !== true;

/** Sessions of other rollouts count too: which of several equal sessions is whose is a guess. */
function commonTask(compared: readonly Compared[]): LedgerMatch['task'] {
  const [first, ...others] = compared.map(({ session }) => session);
  if (first === undefined || first.taskIndex === null) return null;
  const agree = others.every(({ split, taskIndex }) => split === first.split && taskIndex === first.taskIndex);
  return agree ? { split: first.split, index: first.taskIndex } : 'ambiguous';
}

function matchNamed(rollout: ClaimedRollout, compared: Compared): LedgerMatch {
  const { session, alignment } = compared;
  const differences = [...contextDifferences(rollout, session), ...alignment.differences];
  // An upload without calls does not verify a session with calls.
  if (rollout.calls.length === 0) for (const { seq, tool } of session.calls) differences.push(extraOf(seq, tool));
  const verdict = differences.length === 0 ? 'verified' : 'partial';
  const isOther = differences.some(({ kind }) => kind === 'environment' || kind === 'task');
  const match = found(verdict, { ...compared, alignment: { ...alignment, differences } }, 1);
  return { ...match, provenance: 'reported', task: isOther ? null : commonTask([compared]) };
}

const extraOf = (seq: number, tool: string): LedgerDifference => ({ kind: 'extra_call', index: null, seq, uploaded: null, recorded: tool });

function compare(rollout: ClaimedRollout, session: LedgerSession): Compared {
  const distanceMs =
    rollout.startedAt === null || session.lastCallAt === null ? Infinity : Math.abs(rollout.startedAt - session.lastCallAt);
  return { session, alignment: align(rollout.calls, session.calls), distanceMs };
}

/** A session may end before the upload starts (SkyRL, slime) or continue during it (live uploads). */
function isCandidate(rollout: ClaimedRollout, session: LedgerSession): boolean {
  if (session.calls.length === 0) return false;
  if (contextDifferences(rollout, session).length > 0) return false;
  return rollout.startedAt === null || session.lastCallAt === null || Math.abs(rollout.startedAt - session.lastCallAt) <= NEAR_MS;
}

/** Differences of environment and task, if both sides know them. */
function contextDifferences(rollout: ClaimedRollout, session: LedgerSession): LedgerDifference[] {
  const differences: LedgerDifference[] = [];
  const differ = (kind: 'environment' | 'task', uploaded: string | number | null, recorded: string | number | null) => {
    if (uploaded === null || recorded === null || uploaded === recorded) return;
    differences.push({ kind, index: null, seq: null, uploaded, recorded });
  };
  differ('environment', rollout.environment, session.environment);
  if (rollout.taskIndex !== null && session.taskIndex !== null) {
    differ('task', rollout.taskIndex, session.taskIndex);
    differ('task', rollout.split, session.split);
  } else if (formOf(rollout.taskKey) === formOf(session.taskKey)) {
    differ('task', rollout.taskKey, session.taskKey);
  }
  return differences;
}

const formOf = (taskKey: string | null): string | null => taskKey?.slice(0, taskKey.indexOf(':')) ?? null;

/** The first is the nearest. */
function confidenceOf(full: readonly Compared[]): number {
  if (full.length === 1) return 1;
  const [nearest, next] = [full[0]!.distanceMs, full[1]!.distanceMs];
  if (!Number.isFinite(nearest) || next === 0) return 0.5;
  return Number.isFinite(next) ? 0.5 + 0.4 * (1 - nearest / next) : 0.9;
}

/** At least half of the calls must match with their results, because most episodes of an environment start alike. */
function bestPart(rollout: ClaimedRollout, compared: readonly Compared[]): LedgerMatch {
  const scored = compared.map((candidate) => ({ candidate, share: agreedShare(rollout, candidate.alignment) }));
  const alike = scored.filter(({ share }) => share >= 0.5);
  const best = alike
    .filter(({ candidate }) => isFree(candidate))
    .reduce<(typeof scored)[number] | null>((a, b) => (a === null || b.share > a.share ? b : a), null);
  if (best === null) return NOT_FOUND;
  return { ...found('partial', best.candidate, 0.5 * best.share), task: commonTask(alike.map(({ candidate }) => candidate)) };
}

function agreedShare(rollout: ClaimedRollout, { pairs, differences }: Alignment): number {
  const disputed = new Set(differences.filter(({ kind }) => kind === 'reward' || kind === 'finished').map(({ index }) => index));
  return pairs.filter(({ uploaded }) => !disputed.has(uploaded.index)).length / rollout.calls.length;
}

function found(verdict: 'verified' | 'partial', { session, alignment }: Compared, confidence: number): Omit<LedgerMatch, 'task'> {
  return {
    verdict,
    sid: session.sid,
    confidence,
    provenance: 'inferred',
    calls: alignment.pairs.map(({ uploaded, recorded }) => ({
      index: uploaded.index,
      ledgerSeq: recorded.seq,
      durationMs: recorded.durationMs,
      failureClass: recorded.failureClass,
    })),
    differences: alignment.differences.slice(0, MAX_DIFFERENCES),
  };
}
