import { ascending } from '@palestra/metrics';
import { CALL_FAILURES } from '@palestra/protocol';
import type { StepPart } from './step-columns.ts';
import { CALL_BYTES, type ToolUses, USE_BYTES } from './tool-uses.sql.ts';

/** Figures of one tool in one environment of a step. */
export interface ToolRollup {
  env_id: number;
  tool: string;
  figures: {
    /** That used it. */
    rollouts: number;
    calls: number;
    errors: number;
    result_bytes: number;
    /** Of these rollouts those with a reward, and its sum; null for none. */
    scored: number;
    reward_sum: number | null;
    /** Calls that our ledger saw, their true latency, and how they failed. */
    timed: number;
    p50_ms: number | null;
    p95_ms: number | null;
    policy: number;
    environment: number;
    infrastructure: number;
  };
}

interface Gathered extends ToolRollup {
  rewards: number[];
  durations: number[];
}

const TWO_TO_32 = 2 ** 32;

/** Rollouts of a step in ascending order of their numbers. */
export interface Members {
  seq: Float64Array;
  envId: Int32Array;
  /** NaN = unscored. */
  reward: Float64Array;
}

export function membersOf(parts: readonly StepPart[]): Members {
  const count = parts.reduce((total, { seq }) => total + seq.length, 0);
  const members: Members = { seq: new Float64Array(count), envId: new Int32Array(count), reward: new Float64Array(count) };
  let from = 0;
  for (const { seq } of parts) {
    members.seq.set(seq, from);
    from += seq.length;
  }
  members.seq.sort();
  for (const { env_id, seq, reward } of parts) {
    let place = 0;
    for (let at = 0; at < seq.length; at += 1) {
      place = placeOf(members.seq, seq[at]!, place);
      members.envId[place] = env_id;
      members.reward[place] = reward[at]!;
    }
  }
  return members;
}

/** So many places are looked at one by one: rows come nearly in order, and the next one is beside the one before. */
const NEAR = 4;

/** Where `wanted` is in the ascending `seq`, -1 = nowhere; looks from `near` on first. */
function placeOf(seq: Float64Array, wanted: number, near: number): number {
  for (let place = near, last = Math.min(near + NEAR, seq.length); place < last; place += 1) if (seq[place] === wanted) return place;
  let [low, high] = [0, seq.length - 1];
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (seq[middle] === wanted) return middle;
    if (seq[middle]! < wanted) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}

/** Calls, errors by class, true latency where our ledger saw the call, reward of rollouts that used the tool. */
export function toolRollups(members: Members, packed: ToolUses): ToolRollup[] {
  const gathered = new Map<string, Gathered>();
  for (const { tool, entries } of packed.uses) gatherUses(gathered, members, tool, entries);
  for (const { tool, entries } of packed.calls) gatherCalls(gathered, members, tool, entries);
  return [...gathered.values()].map(finished);
}

const keyOf = (envId: number, tool: string) => `${envId}:${tool}`;

function gatherUses(gathered: Map<string, Gathered>, members: Members, tool: string, entries: Buffer): void {
  const view = new DataView(entries.buffer, entries.byteOffset, entries.length);
  const byEnvironment = new Map<number, Gathered>();
  let own: Gathered | undefined;
  let place = 0;
  for (let from = 0; from < entries.length; from += USE_BYTES) {
    const found = placeOf(members.seq, seqAt(view, from), place);
    if (found < 0) continue;
    place = found;
    const envId = members.envId[place]!;
    if (own?.env_id !== envId) {
      own = byEnvironment.get(envId) ?? emptyTool(envId, tool);
      byEnvironment.set(envId, own);
    }
    const { figures } = own;
    figures.rollouts += 1;
    figures.calls += view.getInt32(from + 8);
    figures.errors += view.getInt32(from + 12);
    figures.result_bytes += seqAt(view, from + 16);
    const reward = members.reward[place]!;
    if (!Number.isNaN(reward)) own.rewards.push(reward);
  }
  for (const [envId, found] of byEnvironment) gathered.set(keyOf(envId, tool), found);
}

/** Calls of a tool of which no upload here has a result are in no figure. */
function gatherCalls(gathered: Map<string, Gathered>, members: Members, tool: string, entries: Buffer): void {
  const view = new DataView(entries.buffer, entries.byteOffset, entries.length);
  let place = 0;
  for (let from = 0; from < entries.length; from += CALL_BYTES) {
    const found = placeOf(members.seq, seqAt(view, from), place);
    if (found < 0) continue;
    place = found;
    const own = gathered.get(keyOf(members.envId[place]!, tool));
    if (own === undefined) continue;
    own.figures.timed += 1;
    const duration = view.getFloat32(from + 8);
    if (!Number.isNaN(duration)) own.durations.push(duration);
    const failure = CALL_FAILURES[view.getInt16(from + 12) - 1];
    if (failure !== undefined) own.figures[failure] += 1;
  }
}

/** An eight-byte integer: exact up to 2^53. */
const seqAt = (view: DataView, at: number): number => view.getInt32(at) * TWO_TO_32 + view.getUint32(at + 4);

function emptyTool(envId: number, tool: string): Gathered {
  const counts = { rollouts: 0, calls: 0, errors: 0, result_bytes: 0, scored: 0, timed: 0, policy: 0, environment: 0, infrastructure: 0 };
  return { env_id: envId, tool, figures: { ...counts, reward_sum: null, p50_ms: null, p95_ms: null }, rewards: [], durations: [] };
}

function finished({ env_id, tool, figures, rewards, durations }: Gathered): ToolRollup {
  figures.scored = rewards.length;
  // Ascending, so that the sum has the same last bit in whatever order rows come.
  if (rewards.length > 0) figures.reward_sum = ascending(rewards).reduce((total, reward) => total + reward, 0);
  const sorted = ascending(durations);
  figures.p50_ms = percentile(sorted, 0.5);
  figures.p95_ms = percentile(sorted, 0.95);
  return { env_id, tool, figures };
}

/** As `percentile_cont` of PostgreSQL. */
function percentile(sorted: readonly number[], q: number): number | null {
  if (sorted.length === 0) return null;
  const rank = q * (sorted.length - 1);
  const [low, high] = [sorted[Math.floor(rank)]!, sorted[Math.ceil(rank)]!];
  return low + (rank - Math.floor(rank)) * (high - low);
}
