type Release = () => void;
type Mode = 'serial' | 'concurrent' | 'exclusive';

interface Waiter {
  exclusive: boolean;
  enter: () => void;
}

/**
 * Orders the calls of a session: calls of one serial tool run one after another, different tools run concurrently, and an
 * exclusive call runs alone. A waiting exclusive call delays later calls, so that it does not starve.
 */
export class ToolGate {
  #running = 0;
  #exclusive = false;
  #waiting: Waiter[] = [];
  /** Queued calls of each serial tool that runs or waits. */
  readonly #queues = new Map<string, (() => void)[]>();

  /** Acquires the right to run, without a promise if it is available. The caller must release it exactly once. */
  enter(tool: string, mode: Mode): Release | Promise<Release> {
    if (mode !== 'serial') return this.#pass(mode === 'exclusive');
    const queue = this.#queues.get(tool);
    if (queue !== undefined) return new Promise<void>((enter) => queue.push(enter)).then(() => this.#passSerial(tool));
    this.#queues.set(tool, []);
    return this.#passSerial(tool);
  }

  #passSerial(tool: string): Release | Promise<Release> {
    const serial = (release: Release) => () => {
      release();
      const next = this.#queues.get(tool)!.shift();
      if (next === undefined) this.#queues.delete(tool);
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
