import { STOP_REASONS, UNSCORED_FAILURES } from '@palestra/protocol';
import type { ArrivalWindow } from './arrival-windows.ts';

/** Sum of what is known, and of how many rollouts it is known. */
export interface Known {
  sum: number;
  known: number;
}

/** Figures of rollouts that are sums of whole numbers: exact, in whatever order. */
export interface StepTotals {
  rollouts: number;
  finished: number;
  messages: number;
  calls: number;
  callErrors: number;
  gaps: number;
  /** Rollouts whose upload disagrees with itself about the reward. */
  mismatches: number;
  turns: Known;
  tokensOut: Known;
  tokensTool: Known;
  /** Packed: the weakest in each field. */
  provenance: number;
}

/** Rollouts of one environment at one step, by column, in any order. */
export interface StepPart {
  env_id: number;
  /** Where the step is not known: of these parts there is at least one a window of arrival. */
  window: ArrivalWindow | null;
  /** Keys of the groups of the whole step; all its parts share them. */
  groupKeys: readonly string[];
  seq: Float64Array;
  /** Number in `groupKeys`; -1 = none. */
  group: Int32Array;
  /** NaN = unscored. */
  reward: Float64Array;
  /** `NO_STOP`, `NO_FAILURE` = not known, none. */
  stop: Uint8Array;
  failure: Uint8Array;
  /** -1 = not known. */
  taskId: Int32Array;
  groupSize: Int32Array;
  totals: StepTotals;
}

export const NO_STOP = 15;
export const NO_FAILURE = 3;
/** Bytes that `rollouts.facts` has of each rollout (migration 0016). */
const FACTS_BYTES = 66;
const BITS = { provenance: 0x3_ffff, stop: 18, failure: 22, finished: 24, mismatch: 25, grouped: 26 } as const;
const TWO_TO_32 = 2 ** 32;
if (STOP_REASONS.length > NO_STOP || UNSCORED_FAILURES.length > NO_FAILURE)
  throw new Error('stops and failures do not fit into rollouts.facts any more');

/** Group keys of a step, numbered as they come. */
export class GroupKeys {
  readonly keys: string[] = [];
  readonly #high: number[] = [];
  /** The group before that has the same low half, in a chain. */
  readonly #before: number[] = [];
  readonly #last = new Map<number, number>();

  /** Of the halves of a 64-bit key. */
  numberOf(high: number, low: number): number {
    const last = this.#last.get(low) ?? -1;
    for (let at = last; at >= 0; at = this.#before[at]!) if (this.#high[at] === high) return at;
    const added = this.keys.push(String((BigInt(high) << 32n) | BigInt(low >>> 0))) - 1;
    this.#high.push(high);
    this.#before.push(last);
    this.#last.set(low, added);
    return added;
  }
}

/** Rollouts of a step as PostgreSQL packed them, `rollouts.facts` one after the other: a part an environment. */
export function unpackParts(facts: Buffer, groups: GroupKeys): StepPart[] {
  if (facts.length % FACTS_BYTES !== 0) throw new Error(`${facts.length} bytes of facts are not some rollouts of ${FACTS_BYTES} bytes`);
  const view = new DataView(facts.buffer, facts.byteOffset, facts.length);
  const counts = new Map<number, number>();
  for (let from = 0; from < facts.length; from += FACTS_BYTES) {
    const envId = view.getInt32(from + 8);
    counts.set(envId, (counts.get(envId) ?? 0) + 1);
  }
  const parts = new Map(
    [...counts].map(([env_id, count]) => [env_id, { part: emptyPart({ env_id, window: null, groupKeys: groups.keys }, count), filled: 0 }]),
  );
  let own: { part: StepPart; filled: number } | undefined;
  for (let from = 0; from < facts.length; from += FACTS_BYTES) {
    const envId = view.getInt32(from + 8);
    // Rollouts of a group come one after the other.
    if (own?.part.env_id !== envId) own = parts.get(envId)!;
    unpackRollout(own.part, own.filled, view, from, groups);
    own.filled += 1;
  }
  return [...parts.values()].map(({ part }) => part);
}

function unpackRollout(part: StepPart, at: number, view: DataView, from: number, groups: GroupKeys): void {
  const { totals } = part;
  const bits = view.getInt32(from + 12);
  part.seq[at] = view.getInt32(from) * TWO_TO_32 + view.getUint32(from + 4);
  part.stop[at] = (bits >> BITS.stop) & 15;
  part.failure[at] = (bits >> BITS.failure) & 3;
  part.groupSize[at] = view.getInt16(from + 16);
  part.group[at] = (bits >> BITS.grouped) & 1 ? groups.numberOf(view.getInt32(from + 18), view.getInt32(from + 22)) : -1;
  part.reward[at] = view.getFloat64(from + 26);
  part.taskId[at] = view.getInt32(from + 34);
  totals.provenance = at === 0 ? bits & BITS.provenance : weakerProvenance(totals.provenance, bits & BITS.provenance);
  totals.finished += (bits >> BITS.finished) & 1;
  totals.mismatches += (bits >> BITS.mismatch) & 1;
  totals.messages += view.getInt32(from + 38);
  totals.calls += view.getInt32(from + 42);
  totals.callErrors += view.getInt32(from + 46);
  totals.gaps += view.getInt32(from + 50);
  addKnown(totals.turns, view.getInt32(from + 54));
  addKnown(totals.tokensOut, view.getInt32(from + 58));
  addKnown(totals.tokensTool, view.getInt32(from + 62));
}

function emptyPart(of: Pick<StepPart, 'env_id' | 'window' | 'groupKeys'>, count: number): StepPart {
  const none = (): Known => ({ sum: 0, known: 0 });
  return {
    ...of,
    seq: new Float64Array(count),
    group: new Int32Array(count),
    reward: new Float64Array(count),
    stop: new Uint8Array(count),
    failure: new Uint8Array(count),
    taskId: new Int32Array(count),
    groupSize: new Int32Array(count),
    totals: {
      rollouts: count,
      finished: 0,
      messages: 0,
      calls: 0,
      callErrors: 0,
      gaps: 0,
      mismatches: 0,
      turns: none(),
      tokensOut: none(),
      tokensTool: none(),
      provenance: 0,
    },
  };
}

function addKnown(to: Known, value: number): void {
  if (value < 0) return;
  to.sum += value;
  to.known += 1;
}

/** In each two-bit field the weaker one. */
export function weakerProvenance(one: number, other: number): number {
  if (one === other) return one;
  let result = 0;
  for (let shift = 0; shift < 18; shift += 2) result |= Math.min((one >> shift) & 3, (other >> shift) & 3) << shift;
  return result;
}

const COLUMNS = ['seq', 'group', 'reward', 'stop', 'failure', 'taskId', 'groupSize'] as const;

/** One part of several of the same step. */
export function together(parts: readonly StepPart[]): StepPart {
  const [first] = parts;
  if (parts.length === 1) return first!;
  const totals = totalsTogether(parts.map((part) => part.totals));
  const whole = emptyPart(first!, totals.rollouts);
  let from = 0;
  for (const part of parts) {
    for (const column of COLUMNS) whole[column].set(part[column], from);
    from += part.totals.rollouts;
  }
  whole.totals = totals;
  return whole;
}

export function totalsTogether(parts: readonly StepTotals[]): StepTotals {
  const total = (of: (totals: StepTotals) => number) => parts.reduce((sum, totals) => sum + of(totals), 0);
  const known = (of: (totals: StepTotals) => Known): Known => ({
    sum: total((totals) => of(totals).sum),
    known: total((totals) => of(totals).known),
  });
  return {
    rollouts: total(({ rollouts }) => rollouts),
    finished: total(({ finished }) => finished),
    messages: total(({ messages }) => messages),
    calls: total(({ calls }) => calls),
    callErrors: total(({ callErrors }) => callErrors),
    gaps: total(({ gaps }) => gaps),
    mismatches: total(({ mismatches }) => mismatches),
    turns: known(({ turns }) => turns),
    tokensOut: known(({ tokensOut }) => tokensOut),
    tokensTool: known(({ tokensTool }) => tokensTool),
    provenance: parts.reduce((weakest, { provenance }) => weakerProvenance(weakest, provenance), parts[0]!.provenance),
  };
}
