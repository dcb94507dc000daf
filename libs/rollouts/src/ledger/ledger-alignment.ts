import { sameReward } from '../outcome/reward.ts';

/** A tool call as the rollout tells it. */
export interface UploadedCall {
  /** Message index of the call. */
  index: number;
  tool: string;
  /** `canonicalArgsHash` of its arguments. */
  argsHash: string;
  /** Of its result; null without one. */
  reward: number | null;
  finished: boolean;
  /** False when its result was not uploaded: then reward and end are not compared. Default true. */
  hasResult?: boolean;
}

/** The same as our session ledger recorded it. */
export interface LedgerCall {
  seq: number;
  tool: string;
  argsHash: string;
  reward: number | null;
  finished: boolean;
  durationMs: number | null;
  failureClass: string | null;
}

/** One difference between an upload and the session that it is compared with. */
export interface LedgerDifference {
  /** `missing_call`: uploaded, not recorded. `extra_call`: recorded before the last uploaded one, and not uploaded. */
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
 * Lays the uploaded calls over the recorded ones, in order. Adjacent recorded calls of one tool with equal arguments are retries of a
 * client as far as they outnumber the uploaded ones, and collapse onto those that agree with the upload; recorded calls behind the last
 * uploaded one are allowed, because uploads lose their tail. Where tool or arguments differ, the next equal call ahead is looked for.
 */
export function align(uploaded: readonly UploadedCall[], recorded: readonly LedgerCall[]): Alignment {
  const alignment: Alignment = { pairs: [], differences: [] };
  const wanted = runsOf(uploaded);
  const given = runsOf(recorded);
  const places = placesOf(given);
  let next = 0;
  for (const run of wanted) {
    const ahead = places.get(run.key);
    while (ahead !== undefined && ahead.length > 0 && ahead.at(-1)! < next) ahead.pop();
    const found = ahead?.at(-1);
    if (found === undefined) {
      for (const call of run.calls) alignment.differences.push(missing(call));
      continue;
    }
    for (const skipped of given.slice(next, found)) for (const call of skipped.calls) alignment.differences.push(extra(call));
    pairRun(run.calls, given[found]!.calls, alignment);
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

/** Where the runs of each key stand, the first last, so that what has been passed is popped. */
function placesOf(runs: readonly Run<LedgerCall>[]): Map<string, number[]> {
  const places = new Map<string, number[]>();
  for (let at = runs.length - 1; at >= 0; at -= 1) {
    const known = places.get(runs[at]!.key);
    if (known === undefined) places.set(runs[at]!.key, [at]);
    else known.push(at);
  }
  return places;
}

/** From the back, because the last of several tries is the one whose answer arrived; one that agrees is preferred. */
function pairRun(uploaded: readonly UploadedCall[], recorded: readonly LedgerCall[], alignment: Alignment): void {
  const pairs: Alignment['pairs'] = [];
  const differences: LedgerDifference[] = [];
  let end = recorded.length;
  for (let at = uploaded.length - 1; at >= 0; at -= 1) {
    const call = uploaded[at]!;
    // `at` recorded calls must be left for the uploaded ones before this one.
    let place = end - 1;
    while (place >= at && place >= 0 && disagreements(call, recorded[place]!).length > 0) place -= 1;
    if (place < at || place < 0) place = end - 1;
    if (place < 0) {
      differences.unshift(missing(call));
      continue;
    }
    pairs.unshift({ uploaded: call, recorded: recorded[place]! });
    differences.unshift(...disagreements(call, recorded[place]!));
    end = place;
  }
  alignment.pairs.push(...pairs);
  alignment.differences.push(...differences);
}

function disagreements(call: UploadedCall, recorded: LedgerCall): LedgerDifference[] {
  if (call.hasResult === false) return [];
  const found: LedgerDifference[] = [];
  const at = { index: call.index, seq: recorded.seq };
  const agree =
    call.reward === null || recorded.reward === null ? call.reward === recorded.reward : sameReward(call.reward, recorded.reward);
  if (!agree) found.push({ kind: 'reward', ...at, uploaded: call.reward, recorded: recorded.reward });
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
