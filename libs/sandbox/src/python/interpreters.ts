import { setTimeout as sleep } from 'node:timers/promises';
import { isolation, requireSandbox } from '../process/isolation.ts';
import { Interpreter, prepareRuntime, type Runtime } from './interpreter.ts';
import type { ProgramGuard } from './program-guard.ts';
import { Slots } from './slots.ts';

/** A spare interpreter needs about 130 MB. */
const SPARE_LIFE_MS = 300_000;
const SPARE_AFTER_MS = 1_000;

/** An interpreter with its slot. */
export interface Lease {
  interpreter: Interpreter;
  /** Whether its process ended, or is being ended. */
  readonly hasEnded: boolean;
  /** Ends the interpreter. */
  release(): Promise<void>;
}

/** Leases unused interpreters. Starts some in advance. */
export class Interpreters {
  readonly #places: Slots;
  readonly #mostSpares: number;
  readonly #guard: ProgramGuard;
  readonly #spares: Promise<Interpreter>[] = [];
  #expected = 0;
  #runtime: Promise<Runtime> | null = null;
  #spareTimer: NodeJS.Timeout | null = null;

  /** `most`: maximum alive at the same time, without spares. `guard` counts all of them. */
  constructor(most: number, mostSpares: number, guard: ProgramGuard) {
    this.#places = new Slots(most);
    this.#mostSpares = mostSpares;
    this.#guard = guard;
  }

  /** Announces a lease. Returns a function that withdraws it or marks it as leased. */
  expect(): () => void {
    this.#expected += 1;
    this.#prepare(this.#expected);
    let isExpected = true;
    return () => {
      if (isExpected) this.#expected -= 1;
      isExpected = false;
    };
  }

  /** Waits until interpreters start fast, up to a limit. */
  async warmUp(atMostMs: number): Promise<void> {
    const patience = new AbortController();
    const first = Promise.resolve(this.#runtime).catch(() => null);
    await Promise.race([first, sleep(atMostMs, null, { signal: patience.signal }).catch(() => null)]);
    patience.abort();
  }

  /** Waits for a slot. Rejects with the signal's reason, or if none can be started. */
  async lease(signal: AbortSignal, owner: object): Promise<Lease> {
    const leave = await this.#places.take(signal, owner);
    try {
      const interpreter = await (this.#spares.shift() ?? this.#start());
      interpreter.keepAlive(true);
      let hasEnded = false;
      interpreter.onEnd(() => {
        hasEnded = true;
        leave();
      });
      // The caller may have left; the spare is for another one.
      if (signal.aborted) await interpreter.close();
      signal.throwIfAborted();
      this.#prepareLater();
      return {
        interpreter,
        get hasEnded() {
          return hasEnded || interpreter.isClosed;
        },
        release: () => interpreter.close(),
      };
    } catch (error) {
      leave();
      throw error;
    }
  }

  /** Ends the spares. */
  async close(): Promise<void> {
    if (this.#spareTimer) clearTimeout(this.#spareTimer);
    const ended = this.#spares.splice(0).map(async (spare) => (await spare).close());
    await Promise.allSettled(ended);
  }

  /** Starts a spare after the last lease has had time to start. */
  #prepareLater(): void {
    if (this.#spareTimer) clearTimeout(this.#spareTimer);
    this.#spareTimer = setTimeout(() => this.#prepare(this.#expected + 1), SPARE_AFTER_MS).unref();
  }

  #prepare(count: number): void {
    if (this.#spareTimer) clearTimeout(this.#spareTimer);
    this.#spareTimer = setTimeout(() => void this.close(), SPARE_LIFE_MS).unref();
    while (this.#spares.length < Math.min(count, this.#mostSpares)) {
      const spare = this.#start();
      this.#spares.push(spare);
      const forget = () => {
        const at = this.#spares.indexOf(spare);
        if (at >= 0) void this.#spares.splice(at, 1);
      };
      spare.then((interpreter) => {
        if (this.#spares.includes(spare)) interpreter.keepAlive(false);
        interpreter.onEnd(forget);
      }, forget);
    }
  }

  /** The first call prepares the files. */
  async #start(): Promise<Interpreter> {
    if (this.#runtime === null) {
      this.#runtime = isolation().then(requireSandbox).then(prepareRuntime);
      this.#runtime.catch(() => (this.#runtime = null));
    }
    const interpreter = await Interpreter.start(await this.#runtime);
    this.#guard.add(interpreter);
    interpreter.onEnd(() => this.#guard.forget(interpreter));
    return interpreter;
  }
}
