import type { CallIntent } from '@palestra/session';

/** A noted call that has not ended within this (and twice this at most) is written as one that runs: whoever watches the session sees it. */
const LOOK_MS = 100;

interface Noted {
  call: CallIntent;
  /** The last one before it was noted. */
  look: number;
  /** Settles when it is in the table as one that runs; null = it is in memory alone. */
  written: Promise<void> | null;
}

/** Calls that nobody can come back for, until they have ended: most end long before anybody would look, and are written once. */
export class NotedCalls {
  readonly #noted = new Map<string, Noted>();
  #timer: NodeJS.Timeout | null = null;
  #look = 0;

  /** `write` stores calls as ones that run; it does not reject. */
  constructor(readonly write: (calls: CallIntent[]) => Promise<void>) {}

  add(call: CallIntent): void {
    this.#noted.set(call.taskId, { call, look: this.#look, written: null });
    this.#timer ??= setTimeout(() => this.#lookAround(), LOOK_MS);
  }

  has(taskId: string): boolean {
    return this.#noted.has(taskId);
  }

  /** Forgets a call that has ended. `written`: wait for it, or two statements would wait for each other's row. */
  take(taskId: string): Pick<Noted, 'call' | 'written'> | undefined {
    const noted = this.#noted.get(taskId);
    this.#noted.delete(taskId);
    return noted;
  }

  /** Resolves when all that still run are stored. */
  async drain(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#write(this.#unwritten());
    await Promise.all([...this.#noted.values()].flatMap(({ written }) => written ?? []));
  }

  #lookAround(): void {
    this.#look += 1;
    const open = this.#unwritten();
    this.#timer = open.length > 0 ? setTimeout(() => this.#lookAround(), LOOK_MS) : null;
    this.#write(open.filter(({ look }) => look < this.#look - 1));
  }

  #unwritten(): Noted[] {
    return [...this.#noted.values()].filter(({ written }) => written === null);
  }

  #write(open: readonly Noted[]): void {
    if (open.length === 0) return;
    const written = this.write(open.map(({ call }) => call));
    for (const noted of open) noted.written = written;
  }
}
