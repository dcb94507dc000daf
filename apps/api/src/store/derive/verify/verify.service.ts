import { Inject, Injectable } from '@nestjs/common';
import { type JsonObject, PROVENANCES, VERIFICATIONS } from '@palestra/protocol';
import {
  type CallMessage,
  isInterruptedScore,
  type LedgerDifference,
  type LedgerMatch,
  provenanceShift,
  taskKeyOf,
  uploadedCalls,
} from '@palestra/rollouts';
import type { Logger } from 'pino';
import { Database } from '../../../platform/database/database.ts';
import { LOGGER } from '../../../platform/tokens.ts';
import { codeOf } from '../../vocabulary-codes.ts';
import { bisectBatch, isItemFault } from '../../bisect-batch.ts';
import { TranscriptReader } from '../../storage/transcript-reader.service.ts';
import { selectPointers } from '../../storage/transcript.sql.ts';
import { type CandidateSession, candidateOf } from './verify.ledger.ts';
import { assignSessions, type Claim } from './verify.match.ts';
import {
  type LedgerRow,
  type SearchedCall,
  selectCallMessages,
  selectLedger,
  selectNamedSessions,
  selectSessionsByCalls,
  selectUnverified,
  type SessionRow,
  type UnverifiedRollout,
  type VerifiedRollout,
  verifyLater,
  writeVerdicts,
} from './verify.sql.ts';

/** Rollouts per batch, and bytes of their messages and of the ledger's inputs in memory. */
const BATCH = 500;
const BATCH_BYTES = 64 * 1024 * 1024;
/** Bytes of a rollout that is compared, because all of its calls are in memory together. */
const MAX_BYTES = 128 * 1024 * 1024;
/** Most sessions that the rollouts of one window are compared with. */
const SESSIONS = 2_000;
/** Distinct calls of a rollout by which its session is searched. */
const SEARCHED_CALLS = 8;
/** Calls of the ledger that are looked at for each time that a rollout made a call, and for all rollouts of a window. */
const LEDGER_CALLS = 16;
const MAX_LEDGER_CALLS = 2_000;
/** Rollouts that began further apart have separate windows. */
const WINDOW_MS = 3_600_000;
/** A session may have been open this long before its rollout is uploaded: a day of calls, and a day until the upload. */
const BEFORE_MS = 48 * 3_600_000;
/** Tolerance for the clocks of clients. */
const SKEW_MS = 300_000;
const GIVE_UP_MS = 24 * 3_600_000;
/** Outcomes are written after their responses. After this time a missing one is lost. */
const LATE_OUTCOME_MS = 60_000;
/** A call is in the ledger this long after its answer at the latest, unless PostgreSQL is unavailable. */
const LATE_ROW_MS = 2_000;
/** While its session is open, a rollout is checked again after this share of its age. */
const BACK_OFF = 0.5;
const MIN_AGAIN_S = 5;
/** Delay after an error. */
const FAULTY_S = 3_600;

const SHIFT = provenanceShift('telemetry');
const MASK = 3 << SHIFT;
const NAMED = PROVENANCES.indexOf('reported') << SHIFT;
/** Differences that a rule lists. */
const MAX_DIFFERENCES = 5;
/** Ends of the rule for a failure that was found here, so that a later check can remove it. */
const FALSE_ZERO = '; its last call was lost, so that its 0 is no score';
const PARTIAL_SUM = '; its last call was lost, so that its rewards are no score';

/**
 * Compares rollouts with the session ledger (docs/reference/metrics.md#ledger-match, docs/adr/0016): whether the environment executed the
 * uploaded calls, their latency, and the failure class of failed ones.
 */
@Injectable()
export class VerifyService {
  constructor(
    private readonly database: Database,
    private readonly transcripts: TranscriptReader,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** Checks one batch. Returns whether there may be more. */
  async round(): Promise<boolean> {
    const rollouts = await selectUnverified(this.database.pool, BATCH, BATCH_BYTES, NAMED);
    if (rollouts.length === 0) return false;
    let written = 0;
    await bisectBatch(
      rollouts,
      async (part) => (written += await this.#verify(part)),
      async ({ seq, id }, error) => {
        await verifyLater(this.database.pool, seq, FAULTY_S);
        this.logger.error({ err: error, rollout: id }, 'a rollout could not be compared with the session ledger; it is repeated later');
      },
      isItemFault,
    );
    // Rollouts that another process holds wait for the next round.
    return rollouts.length === BATCH && written > 0;
  }

  async #verify(rollouts: readonly UnverifiedRollout[]): Promise<number> {
    const vast = rollouts.find(({ bytes }) => bytes > MAX_BYTES);
    if (vast) throw new Error(`rollout ${vast.id} has ${vast.bytes} bytes, more than ${MAX_BYTES}`);
    const messages = await this.#messages(rollouts);
    const verified: VerifiedRollout[] = [];
    for (const window of windowsOf(rollouts)) {
      const claims = window.map((rollout) => claimOf(rollout, messages.get(rollout.seq) ?? []));
      const sessions = await this.#sessions(window, claims);
      const matches = assignSessions(claims, sessions);
      window.forEach((rollout, at) => verified.push(verifiedRollout(rollout, claims[at]!, matches.get(rollout.seq)!, sessions)));
    }
    return writeVerdicts(this.database.pool, verified, MASK);
  }

  async #messages(rollouts: readonly UnverifiedRollout[]): Promise<Map<string, CallMessage[]>> {
    const found = await selectCallMessages(this.database.pool, rollouts);
    // In this order, so that a rollout that is sealed in between appears in both.
    const seqs = rollouts.map(({ seq }) => seq);
    const pointers = await selectPointers(this.database.pool, seqs);
    for (const { seq, day } of rollouts) {
      if (!pointers.has(seq)) continue;
      const rows = await this.transcripts.messages({ seq, day, sealed: true });
      found.set(
        seq,
        rows.map(({ index, type, name, call_id, reward, is_finished, content }) => {
          return { index, type, name, callId: call_id, reward, isFinished: is_finished, content: type === 'tool_call' ? content : null };
        }),
      );
    }
    return found;
  }

  /** The sessions that these rollouts name, and candidates for the others. */
  async #sessions(window: readonly UnverifiedRollout[], claims: readonly Claim[]): Promise<CandidateSession[]> {
    const { pool } = this.database;
    const { org_id: orgId, environment } = window[0]!;
    const sids = window.flatMap(({ named_sid }) => named_sid ?? []);
    const rows = sids.length > 0 ? await selectNamedSessions(pool, orgId, sids) : [];
    const unnamed = claims.filter(({ sessionId, calls }) => sessionId === null && calls.length > 0);
    if (environment !== null && unnamed.length > 0) {
      const starts = unnamed.map(({ startedAt }) => startedAt!);
      const to = Math.max(...starts, ...window.map(({ last_at }) => last_at)) + SKEW_MS;
      const searched = { orgId, environment, from: Math.min(...starts) - BEFORE_MS, to, limit: SESSIONS };
      const batch = window.map(({ seq }) => seq);
      const known = new Set(rows.map(({ sid }) => sid));
      for (const row of await selectSessionsByCalls(pool, searched, searchedCalls(unnamed), batch)) if (!known.has(row.sid)) rows.push(row);
    }
    return this.#candidates(rows);
  }

  async #candidates(sessions: readonly SessionRow[]): Promise<CandidateSession[]> {
    if (sessions.length === 0) return [];
    const sids = sessions.map(({ sid }) => sid);
    const { rows, cut } = await selectLedger(this.database.pool, sids, BATCH_BYTES);
    const calls = new Map<string, LedgerRow[]>();
    for (const row of rows) {
      const callsOfSession = calls.get(row.sid);
      if (callsOfSession) callsOfSession.push(row);
      else calls.set(row.sid, [row]);
    }
    // A session with missing calls cannot be compared.
    const last = cut ? sids.indexOf(rows.at(-1)!.sid) : sids.length;
    return sessions.slice(0, last).map((session) => candidateOf(session, calls.get(session.sid) ?? []));
  }
}

/** Rollouts of one organisation and environment that began at about the same time. */
function windowsOf(rollouts: readonly UnverifiedRollout[]): UnverifiedRollout[][] {
  const windows: UnverifiedRollout[][] = [];
  const open = new Map<string, UnverifiedRollout[]>();
  for (const rollout of rollouts.toSorted((a, b) => startOf(a) - startOf(b))) {
    const key = `${rollout.org_id} ${rollout.environment ?? ''}`;
    const window = open.get(key);
    if (window && startOf(rollout) - startOf(window[0]!) <= WINDOW_MS) window.push(rollout);
    else {
      const fresh = [rollout];
      open.set(key, fresh);
      windows.push(fresh);
    }
  }
  return windows;
}

/** The last calls of the rollouts: the later a call, the fewer sessions made it. More rollouts that made a call may have more sessions. */
function searchedCalls(claims: readonly Claim[]): SearchedCall[] {
  const found = new Map<string, SearchedCall>();
  for (const { calls } of claims) {
    const last = new Map(calls.map((call) => [`${call.argsHash} ${call.tool}`, call]));
    for (const [key, { tool, argsHash }] of [...last].slice(-SEARCHED_CALLS)) {
      const repeats = calls.filter((call) => call.tool === tool && call.argsHash === argsHash).length;
      const limit = (found.get(key)?.limit ?? 0) + repeats * LEDGER_CALLS;
      found.set(key, { tool, argsHash, limit: Math.min(limit, MAX_LEDGER_CALLS) });
    }
  }
  return [...found.values()];
}

/** Uses the time of arrival if the client's clock is wrong. */
function startOf({ started_at, received_at }: UnverifiedRollout): number {
  return typeof started_at === 'number' && Math.abs(started_at - received_at) < GIVE_UP_MS ? started_at : received_at;
}

/** The task that the upload names itself: a match must not confirm itself. */
function claimedTask({ upload, split, task_index, task_key }: UnverifiedRollout): Pick<Claim, 'split' | 'taskIndex' | 'taskKey'> {
  if (upload === null) return { split, taskIndex: task_index, taskKey: task_key };
  const start = upload.start ?? {};
  const task = taskKeyOf(start, { ...(start.rollout_info as JsonObject | undefined), ...upload.info }, null, null);
  return { split: typeof start.split === 'string' ? start.split : null, taskIndex: task.index, taskKey: task.key };
}

function claimOf(rollout: UnverifiedRollout, messages: readonly CallMessage[]): Claim {
  return {
    seq: rollout.seq,
    id: rollout.id,
    environment: rollout.environment,
    ...claimedTask(rollout),
    sessionId: rollout.named_sid,
    startedAt: startOf(rollout),
    calls: uploadedCalls(messages),
  };
}

function verifiedRollout(
  rollout: UnverifiedRollout,
  claim: Claim,
  match: LedgerMatch,
  sessions: readonly CandidateSession[],
): VerifiedRollout {
  const session = sessions.find(({ sid }) => sid === match.sid);
  // A failure that was known before stays.
  const before = [FALSE_ZERO, PARTIAL_SUM].some((end) => rollout.rule?.endsWith(end)) ? null : rollout.failure_class;
  const interruption = before === null && session !== undefined ? interruptionOf(rollout, claim, match, session) : '';
  const tools = new Map(claim.calls.map(({ index, tool }) => [index, tool]));
  const durations = match.calls.flatMap(({ durationMs }) => durationMs ?? []);
  const again = againAfter(rollout, match, sessions);
  return {
    seq: rollout.seq,
    revision: rollout.revision,
    // An open session may still get calls, so a rollout that names no session gets no verdict yet. Neither does one that is early.
    verdict: again !== null && (claim.sessionId === null || isEarly(rollout)) ? null : codeOf(VERIFICATIONS, match.verdict),
    sid: match.sid ?? claim.sessionId,
    latency_ms: durations.length > 0 ? durations.reduce((sum, ms) => sum + ms, 0) : null,
    telemetry: claim.sessionId === null ? PROVENANCES.indexOf(match.provenance) << SHIFT : NAMED,
    rule: interruption ? `${ruleOf(claim, match, session)}${interruption}` : ruleOf(claim, match, session),
    failure_class: interruption ? 'infrastructure' : before,
    ledger_task: match.task === 'ambiguous' ? { ambiguous: true } : match.task,
    again_s: again,
    calls: match.calls.map(({ index, ledgerSeq, durationMs, failureClass }) => ({
      index,
      ledger_seq: ledgerSeq,
      tool: tools.get(index) ?? '',
      duration_ms: durationMs,
      failure_class: failureClass === 'ok' ? null : failureClass,
    })),
  };
}

/** The end of the rule if the rewards of the upload are no score, else empty. */
function interruptionOf({ reward_reported }: UnverifiedRollout, claim: Claim, match: LedgerMatch, { calls }: CandidateSession): string {
  const recorded = new Map(calls.map(({ seq, reward }) => [seq, reward]));
  const sameCall = new Map(match.calls.map(({ index, ledgerSeq }) => [index, recorded.get(ledgerSeq) ?? null]));
  const claimed = claim.calls.map(({ index, reward }) => ({ reward, recorded: sameCall.get(index) ?? null }));
  if (!isInterruptedScore({ reported: reward_reported, calls: claimed }, calls)) return '';
  return reward_reported || claimed.some(({ reward }) => reward) ? PARTIAL_SUM : FALSE_ZERO;
}

/** Rows of calls are written shortly after the calls: a fast upload can be here before the last ones of its session. */
const isEarly = ({ age_ms }: UnverifiedRollout): boolean => age_ms < LATE_ROW_MS;

/** Seconds until the next check, because an open session may still get missing calls; null = none. */
function againAfter(rollout: UnverifiedRollout, match: LedgerMatch, sessions: readonly CandidateSession[]): number | null {
  if (match.verdict === 'verified' || rollout.age_ms > GIVE_UP_MS) return null;
  const sid = rollout.named_sid ?? match.sid;
  const fresh = rollout.age_ms < LATE_OUTCOME_MS;
  const waits = sessions.some(
    (session) => (session.open || (session.unsettled && fresh)) && (sid === null ? !session.taken : session.sid === sid),
  );
  if (waits) return Math.max((rollout.age_ms / 1000) * BACK_OFF, MIN_AGAIN_S);
  return isEarly(rollout) ? LATE_ROW_MS / 1000 : null;
}

/**
 * How the session was found and which differences exist, for users. It begins with `ledger` (derive.sql.ts keeps it). Null: no session was
 * found or named.
 */
function ruleOf(claim: Claim, match: LedgerMatch, session: CandidateSession | undefined): string | null {
  if (session === undefined) return claim.sessionId === null ? null : 'ledger: the session that it names is not known';
  if (session.recordedAs === claim.id) return 'ledger: recorded';
  const how =
    claim.sessionId !== null
      ? 'named'
      : match.verdict === 'partial'
        ? 'most alike'
        : match.confidence === 1
          ? 'the only equal one'
          : 'nearest of equal ones';
  const texts = match.differences.slice(0, MAX_DIFFERENCES).map(differenceText);
  if (match.differences.length > MAX_DIFFERENCES) texts.push(`${match.differences.length - MAX_DIFFERENCES} more`);
  return [`ledger: ${how}, confidence ${match.confidence.toFixed(2)}`, ...texts].join('; ');
}

function differenceText({ kind, index, uploaded, recorded }: LedgerDifference): string {
  const at = index === null ? '' : ` of message ${index}`;
  if (kind === 'missing_call') return `call${at} (${String(uploaded)}) is not recorded`;
  if (kind === 'extra_call') return `a recorded call (${String(recorded)}) was not uploaded`;
  return `${kind}${at} is ${String(uploaded)}, recorded ${String(recorded)}`;
}
