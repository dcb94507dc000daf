type Release = () => void;
type Mode = 'serial' | 'concurrent' | 'exclusive';

interface Waiter {
  exclusive: boolean;
  enter: () => void;
}

/**
 * Who may run now, inside one session: calls of one serial tool one after another, different tools beside each other, an
 * exclusive call alone. A waiting exclusive call holds back those that come later, so that it is never starved.
 */
export class ToolGate {
  #running = 0;
  #exclusive = false;
  #waiting: Waiter[] = [];
  readonly #lastOfTool = new Map<string, Promise<void>>();

  /** Resolves when the call may run; the caller must release it exactly once. */
  async enter(tool: string, mode: Mode): Promise<Release> {
    if (mode !== 'serial') return this.#pass(mode === 'exclusive');
    const before = this.#lastOfTool.get(tool);
    let leave!: () => void;
    const mine = new Promise<void>((resolve) => (leave = resolve));
    this.#lastOfTool.set(tool, mine);
    if (before) await before;
    const release = await this.#pass(false);
    return () => {
      release();
      leave();
      if (this.#lastOfTool.get(tool) === mine) this.#lastOfTool.delete(tool);
    };
  }

  async #pass(exclusive: boolean): Promise<Release> {
    if (!this.#admits(exclusive) || this.#waiting.some((waiter) => waiter.exclusive)) {
      await new Promise<void>((enter) => this.#waiting.push({ exclusive, enter }));
    } else {
      this.#admit(exclusive);
    }
    return () => this.#leave(exclusive);
  }

  #admits(exclusive: boolean): boolean {
    return !this.#exclusive && (!exclusive || this.#running === 0);
  }

  #admit(exclusive: boolean): void {
    this.#running += 1;
    this.#exclusive = exclusive;
  }

  #leave(exclusive: boolean): void {
    this.#running -= 1;
    if (exclusive) this.#exclusive = false;
    for (let next = this.#next(); next && this.#admits(next.exclusive); next = this.#next()) {
      this.#waiting.splice(this.#waiting.indexOf(next), 1);
      this.#admit(next.exclusive);
      next.enter();
    }
  }

  #next(): Waiter | undefined {
    return this.#waiting.find((waiter) => waiter.exclusive) ?? this.#waiting[0];
  }
}
