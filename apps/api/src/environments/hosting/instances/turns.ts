/** At most so many pieces of work at the same time. Others begin in their order. */
export class Turns {
  readonly #most: number;
  readonly #queue: (() => void)[] = [];
  #active = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Resolves when the work may begin. `end` must follow. */
  begin(): Promise<void> {
    this.#active += 1;
    return this.#active <= this.#most ? Promise.resolve() : new Promise((resolve) => this.#queue.push(resolve));
  }

  end(): void {
    this.#active -= 1;
    this.#queue.shift()?.();
  }

  /** Lets all that wait begin at once. */
  release(): void {
    for (const next of this.#queue.splice(0)) next();
  }
}
