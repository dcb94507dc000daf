import type { ArrivalLine } from './bursts.ts';

/** Arrivals split into waves. A wave is what one training step requested. */
export interface Waves {
  /** Number of the wave of each arrival, from 0. */
  wave: Int32Array;
  /** Number of earlier arrivals of the same task in the wave. */
  position: Int32Array;
  /** Index of the first arrival of each wave. */
  starts: number[];
  /**
   * Share of the waves in which no task occurs more than n times and at most a few are incomplete; the last wave may still grow. 0
   * without waves.
   */
  confidence: number;
}

export interface WaveRule {
  /** Samples per prompt. */
  n: number;
  /** n was counted from the arrivals, not configured. */
  counted: boolean;
  /** Prompts per wave; null: not known. */
  batchSize: number | null;
}

/** A larger number of samples per prompt must be configured. */
const MAX_COUNTED_N = 64;

/**
 * Splits the arrivals in one pass (docs/reference/metrics.md#step-inference). A new wave starts after a long gap if the wave is complete:
 * 95 % of its tasks hold a multiple of n (in small waves all but one, so that a single lost sample does not join two waves). Late
 * siblings of an incomplete task still belong to it. With a known batch size gaps do not matter: a new wave starts with the first arrival
 * for which the old one has no room. So a lost rollout shifts nothing beyond the next wave.
 *
 * A stream without pauses is one wave, in which every task has n samples by definition. So if n was only counted (`counted`), a single
 * wave passes only if it is complete with a plausible n.
 */
export function cutWaves({ tasks, taskCount }: ArrivalLine, long: Uint8Array, cut: WaveRule): Waves {
  const { n, batchSize } = cut;
  const wave = new Int32Array(tasks.length);
  const position = new Int32Array(tasks.length);
  const current = new WaveCounter(taskCount, n);
  const starts: number[] = [];
  let passed = 0;
  let ripe = false;
  for (let at = 0; at < tasks.length; at += 1) {
    const task = tasks[at]!;
    ripe ||= long[at] === 1 && current.isComplete();
    const full = batchSize === null ? ripe && !current.isWaiting(task) : !current.hasRoom(task, batchSize);
    if (at === 0 || full) {
      if (at > 0 && current.passes(false)) passed += 1;
      current.reset();
      starts.push(at);
      ripe = false;
    }
    wave[at] = starts.length - 1;
    position[at] = current.add(task);
  }
  const doubtful = cut.counted && starts.length === 1;
  if (tasks.length > 0 && current.passes(!doubtful) && (!doubtful || n <= MAX_COUNTED_N)) passed += 1;
  return { wave, position, starts, confidence: starts.length === 0 ? 0 : passed / starts.length };
}

const COMPLETE_SHARE = 0.95;
/** Waves with at least this many tasks tolerate one incomplete task, even above 5 %. */
const SMALL_WAVE = 8;

/** Counts of each task in the current wave; `reset` is O(1). */
class WaveCounter {
  readonly #counts: Int32Array;
  readonly #waveOf: Int32Array;
  readonly #n: number;
  #wave = 0;
  #present = 0;
  #complete = 0;
  #over = false;

  constructor(taskCount: number, n: number) {
    this.#counts = new Int32Array(taskCount);
    this.#waveOf = new Int32Array(taskCount);
    this.#n = n;
  }

  reset(): void {
    this.#wave += 1;
    this.#present = 0;
    this.#complete = 0;
    this.#over = false;
  }

  /** Counts an arrival and returns the number of earlier arrivals of its task. Arrivals of unknown tasks do not count. */
  add(task: number): number {
    if (task < 0) return 0;
    const before = this.#countOf(task);
    if (before === 0) this.#present += 1;
    else if (before % this.#n === 0) this.#complete -= 1;
    if ((before + 1) % this.#n === 0) this.#complete += 1;
    if (before + 1 > this.#n) this.#over = true;
    this.#waveOf[task] = this.#wave;
    this.#counts[task] = before + 1;
    return before;
  }

  /** The task is in the wave and lacks samples. */
  isWaiting(task: number): boolean {
    return task >= 0 && this.#countOf(task) % this.#n !== 0;
  }

  hasRoom(task: number, batchSize: number): boolean {
    if (task < 0) return true;
    const count = this.#countOf(task);
    return count === 0 ? this.#present < batchSize : count < this.#n;
  }

  isComplete(): boolean {
    const spared = this.#present >= SMALL_WAVE ? this.#present - 1 : this.#present;
    return this.#complete >= Math.min(COMPLETE_SHARE * this.#present, spared);
  }

  passes(growing: boolean): boolean {
    return !this.#over && this.#present > 0 && (growing || this.isComplete());
  }

  #countOf(task: number): number {
    return this.#waveOf[task] === this.#wave ? this.#counts[task]! : 0;
  }
}
