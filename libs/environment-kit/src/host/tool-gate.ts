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
  /** Of each serial tool that runs, or is about to, those that come after it. */
  readonly #behind = new Map<string, (() => void)[]>();

  /** Whoever may run at once need not wait for an answer. The caller must release it exactly once. */
  enter(tool: string, mode: Mode): Release | Promise<Release> {
    if (mode !== 'serial') return this.#pass(mode === 'exclusive');
    const behind = this.#behind.get(tool);
    if (behind !== undefined) return new Promise<void>((enter) => behind.push(enter)).then(() => this.#passSerial(tool));
    this.#behind.set(tool, []);
    return this.#passSerial(tool);
  }

  #passSerial(tool: string): Release | Promise<Release> {
    const serial = (release: Release) => () => {
      release();
      const next = this.#behind.get(tool)!.shift();
      if (next === undefined) this.#behind.delete(tool);
      else next();
    };
    const passed = this.#pass(false);
    return passed instanceof Promise ? passed.then(serial) : serial(passed);
  }

  #pass(exclusive: boolean): Release | Promise<Release> {
    const release = () => this.#leave(exclusive);
    if (!this.#admits(exclusive) || this.#waiting.some((waiter) => waiter.exclusive)) {
      return new Promise<void>((enter) => this.#waiting.push({ exclusive, enter })).then(() => release);
    }
    this.#admit(exclusive);
    return release;
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
