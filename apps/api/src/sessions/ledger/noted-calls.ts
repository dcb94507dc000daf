import type { CallIntent, CallResult, NotedCall } from '@palestra/session';

/** A noted call that has not ended within this (and twice this at most) is written as one that runs: whoever watches the session sees it. */
const LOOK_MS = 100;

type End = Omit<CallResult, 'taskId'>;

export interface NotedCallsOptions {
  /** Stores calls as ones that run; answers whether they are stored. Does not reject. */
  writeRunning(calls: CallIntent[]): Promise<boolean>;
  /** One that is not stored has ended. */
  ended(call: CallIntent, end: End): void;
  /** One that is stored as running has ended. */
  endedLate(call: CallIntent, end: End): void;
}

class Noted implements NotedCall {
  /** Settles when it is in the table as one that runs; null = it is in memory alone. */
  written: Promise<boolean> | null = null;

  constructor(
    readonly calls: NotedCalls,
    readonly call: CallIntent,
    /** The last one before it was noted. */
    readonly look: number,
  ) {}

  end(end: End): void {
    this.calls.end(this, end);
  }
}

/** Calls that nobody can come back for, until they have ended: most end long before anybody would look, and are written once. */
export class NotedCalls {
  readonly #noted = new Set<Noted>();
  /** Ends that wait until their calls are stored. */
  readonly #late = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | null = null;
  #look = 0;

  constructor(readonly options: NotedCallsOptions) {}

  add(call: CallIntent): NotedCall {
    const noted = new Noted(this, call, this.#look);
    this.#noted.add(noted);
    this.#timer ??= setTimeout(() => this.#lookAround(), LOOK_MS);
    return noted;
  }

  end(noted: Noted, end: End): void {
    this.#noted.delete(noted);
    const { call, written } = noted;
    if (written === null) return this.options.ended(call, end);
    // Two statements would wait for each other's row.
    const late = written.then((stored) => {
      this.#late.delete(late);
      if (stored) this.options.endedLate(call, end);
      else this.options.ended(call, end);
    });
    this.#late.add(late);
  }

  /** Resolves when all that still run are stored, and no end waits here. */
  async drain(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#write(this.#unwritten());
    await Promise.all([...this.#noted].flatMap(({ written }) => written ?? []));
    await Promise.all(this.#late);
  }

  #lookAround(): void {
    this.#look += 1;
    const open = this.#unwritten();
    this.#timer = open.length > 0 ? setTimeout(() => this.#lookAround(), LOOK_MS) : null;
    this.#write(open.filter(({ look }) => look < this.#look - 1));
  }

  #unwritten(): Noted[] {
    return [...this.#noted].filter(({ written }) => written === null);
  }

  #write(open: readonly Noted[]): void {
    if (open.length === 0) return;
    const written = this.options.writeRunning(open.map(({ call }) => call));
    for (const noted of open) noted.written = written;
  }
}
