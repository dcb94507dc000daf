import { type Image, Interpreter } from './interpreter.ts';
import { Slots } from './slots.ts';

/** An unused spare costs some 30 MB. */
const SPARE_LIFE_MS = 300_000;

/** An interpreter, and its place among those that there may be. */
export interface Lease {
  interpreter: Interpreter;
  /** Ends the interpreter. */
  release(): Promise<void>;
}

/** Hands out interpreters that nobody has used before, one of which is kept ready once somebody asked. */
export class Interpreters {
  readonly #places: Slots;
  #first: Promise<Image> | null = null;
  #spare: Promise<Interpreter> | null = null;
  #spareTimer: NodeJS.Timeout | null = null;

  /** `most`: alive at the same time, without the spare. */
  constructor(most: number) {
    this.#places = new Slots(most);
  }

  /** Waits for a place. Rejects with the signal's reason, or when none can be started. */
  async lease(signal: AbortSignal): Promise<Lease> {
    const leave = await this.#places.take(signal);
    try {
      const interpreter = await this.#takeSpare();
      interpreter.onEnd(leave);
      // Started for whoever needs it; the one who waited may have given up.
      if (signal.aborted) await interpreter.close();
      signal.throwIfAborted();
      this.#prepareSpare();
      return { interpreter, release: () => interpreter.close() };
    } catch (error) {
      leave();
      throw error;
    }
  }

  /** Ends the spare. */
  async close(): Promise<void> {
    if (this.#spareTimer) clearTimeout(this.#spareTimer);
    const spare = this.#spare;
    this.#spare = null;
    await spare?.then(
      (interpreter) => interpreter.close(),
      () => {},
    );
  }

  async #takeSpare(): Promise<Interpreter> {
    const spare = this.#spare;
    this.#spare = null;
    return spare ?? this.#start();
  }

  #prepareSpare(): void {
    if (this.#spareTimer) clearTimeout(this.#spareTimer);
    this.#spareTimer = setTimeout(() => void this.close(), SPARE_LIFE_MS).unref();
    if (this.#spare !== null) return;
    const spare = this.#start();
    this.#spare = spare;
    const forget = () => {
      if (this.#spare === spare) this.#spare = null;
    };
    spare.then((interpreter) => interpreter.onEnd(forget), forget);
  }

  /** The first one starts from nothing, the others from its memory. */
  async #start(): Promise<Interpreter> {
    if (this.#first !== null) return (await Interpreter.start(await this.#first)).interpreter;
    const first = Interpreter.start(null);
    this.#first = first.then(({ image }) => image!);
    this.#first.catch(() => (this.#first = null));
    return (await first).interpreter;
  }
}
