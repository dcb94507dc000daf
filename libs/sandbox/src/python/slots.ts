/** A counting semaphore. Owners that wait take turns, so that one with many calls does not delay the others; each is served in order. */
export class Slots {
  #free: number;
  /** By owner, in the order of their turns. */
  readonly #waiting = new Map<object, (() => void)[]>();

  constructor(count: number) {
    this.#free = count;
  }

  /** Returns a function that releases the slot once. Rejects with the signal's reason. */
  async take(signal: AbortSignal, owner: object = signal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else await this.#turn(signal, owner);
    let isHeld = true;
    return () => {
      if (isHeld) this.#giveBack();
      isHeld = false;
    };
  }

  #turn(signal: AbortSignal, owner: object): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      const go = () => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      const leave = () => {
        const left = this.#waiting.get(owner)!.filter((other) => other !== go);
        if (left.length > 0) this.#waiting.set(owner, left);
        else this.#waiting.delete(owner);
        reject(signal.reason as Error);
      };
      signal.addEventListener('abort', leave, { once: true });
      this.#waiting.set(owner, [...(this.#waiting.get(owner) ?? []), go]);
    });
  }

  #giveBack(): void {
    const turn = this.#waiting.entries().next();
    if (turn.done) return void (this.#free += 1);
    const [owner, [go, ...later]] = turn.value;
    // Its next turn is after those of the others.
    this.#waiting.delete(owner);
    if (later.length > 0) this.#waiting.set(owner, later);
    go!();
  }
}
