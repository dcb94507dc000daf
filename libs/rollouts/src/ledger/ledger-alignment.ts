import { sameReward } from '../outcome/reward.ts';

/** A tool call of an upload. */
export interface UploadedCall {
  /** Message index of the call. */
  index: number;
  tool: string;
  /** `canonicalArgsHash` of its arguments. */
  argsHash: string;
  /** Reward of its result; null without one. */
  reward: number | null;
  finished: boolean;
  /** False if the result was not uploaded; then reward and end are not compared. Default true. */
  hasResult?: boolean;
}

/** A tool call in the session ledger. */
export interface LedgerCall {
  seq: number;
  tool: string;
  argsHash: string;
  reward: number | null;
  finished: boolean;
  durationMs: number | null;
  failureClass: string | null;
}

/** A difference between an upload and a session. */
export interface LedgerDifference {
  /** `missing_call`: uploaded, not recorded. `extra_call`: recorded before the last uploaded call, and not uploaded. */
  kind: 'missing_call' | 'extra_call' | 'reward' | 'finished' | 'environment' | 'task';
  /** Message index of the uploaded call. */
  index: number | null;
  seq: number | null;
  uploaded: string | number | boolean | null;
  recorded: string | number | boolean | null;
}

export interface Alignment {
  pairs: { uploaded: UploadedCall; recorded: LedgerCall }[];
  differences: LedgerDifference[];
}

interface Run<Call> {
  key: string;
  calls: Call[];
}

/**
 * Aligns the uploaded calls with the recorded ones, in order. Adjacent recorded calls of one tool with equal arguments that outnumber the
 * uploaded ones are retries of the client; they collapse onto those that agree with the upload. Recorded calls after the last uploaded
 * one are allowed, because uploads lose their tail. If tool or arguments differ, the next equal call is used.
 */
export function align(uploaded: readonly UploadedCall[], recorded: readonly LedgerCall[]): Alignment {
  const alignment: Alignment = { pairs: [], differences: [] };
  const uploadedRuns = runsOf(uploaded);
  const recordedRuns = runsOf(recorded);
  const positions = positionsOf(recordedRuns);
  let next = 0;
  for (const run of uploadedRuns) {
    const ahead = positions.get(run.key);
    while (ahead !== undefined && ahead.length > 0 && ahead.at(-1)! < next) ahead.pop();
    const found = ahead?.at(-1);
    if (found === undefined) {
      for (const call of run.calls) alignment.differences.push(missing(call));
      continue;
    }
    for (const skipped of recordedRuns.slice(next, found)) for (const call of skipped.calls) alignment.differences.push(extra(call));
    pairRun(run.calls, recordedRuns[found]!.calls, alignment);
    next = found + 1;
  }
  return alignment;
}

function runsOf<Call extends { tool: string; argsHash: string }>(calls: readonly Call[]): Run<Call>[] {
  const runs: Run<Call>[] = [];
  for (const call of calls) {
    const key = `${call.argsHash} ${call.tool}`;
    const last = runs.at(-1);
    if (last?.key === key) last.calls.push(call);
    else runs.push({ key, calls: [call] });
  }
  return runs;
}

/** The positions of the runs of each key, the first one last, so that `pop` removes those that were passed. */
function positionsOf(runs: readonly Run<LedgerCall>[]): Map<string, number[]> {
  const positions = new Map<string, number[]>();
  for (let at = runs.length - 1; at >= 0; at -= 1) {
    const known = positions.get(runs[at]!.key);
    if (known === undefined) positions.set(runs[at]!.key, [at]);
    else known.push(at);
  }
  return positions;
}

/** Recorded calls that are looked through for one that agrees: a client does not retry a call more often. */
const MAX_RETRIES = 1_000;

/** Pairs from the back, because the last of several retries is the one whose answer arrived. Prefers a call that agrees. */
function pairRun(uploaded: readonly UploadedCall[], recorded: readonly LedgerCall[], alignment: Alignment): void {
  const pairs: Alignment['pairs'] = [];
  const differences: LedgerDifference[] = [];
  let end = recorded.length;
  for (let at = uploaded.length - 1; at >= 0; at -= 1) {
    const call = uploaded[at]!;
    // The uploaded calls before this one need `at` recorded calls.
    const first = Math.max(at, end - MAX_RETRIES);
    let position = end - 1;
    while (position >= first && !agrees(call, recorded[position]!)) position -= 1;
    if (position < first) position = end - 1;
    if (position < 0) {
      differences.push(missing(call));
      continue;
    }
    pairs.push({ uploaded: call, recorded: recorded[position]! });
    differences.push(...disagreements(call, recorded[position]!).toReversed());
    end = position;
  }
  for (const pair of pairs.toReversed()) alignment.pairs.push(pair);
  for (const difference of differences.toReversed()) alignment.differences.push(difference);
}

const hasReward = (call: UploadedCall, recorded: LedgerCall): boolean =>
  call.reward === null || recorded.reward === null ? call.reward === recorded.reward : sameReward(call.reward, recorded.reward);

/** Whether there are no `disagreements`. */
const agrees = (call: UploadedCall, recorded: LedgerCall): boolean =>
  call.hasResult === false || (hasReward(call, recorded) && call.finished === recorded.finished);

function disagreements(call: UploadedCall, recorded: LedgerCall): LedgerDifference[] {
  if (call.hasResult === false) return [];
  const found: LedgerDifference[] = [];
  const at = { index: call.index, seq: recorded.seq };
  if (!hasReward(call, recorded)) found.push({ kind: 'reward', ...at, uploaded: call.reward, recorded: recorded.reward });
  if (call.finished !== recorded.finished) found.push({ kind: 'finished', ...at, uploaded: call.finished, recorded: recorded.finished });
  return found;
}

const missing = (call: UploadedCall): LedgerDifference => ({
  kind: 'missing_call',
  index: call.index,
  seq: null,
  uploaded: call.tool,
  recorded: null,
});
const extra = (call: LedgerCall): LedgerDifference => ({
  kind: 'extra_call',
  index: null,
  seq: call.seq,
  uploaded: null,
  recorded: call.tool,
});
