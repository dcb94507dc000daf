import type { Clock } from '@palestra/kit';
import type { AdmissionStore } from '../ports/admission-store.port.ts';
import type { Caller } from '../ports/directory.port.ts';

/** How old a count may be near a quota, and far from it. */
const SHORT_MS = 1_000;
const LONG_MS = 10_000;
/** A count that leads to a refusal must not be older than this. */
const REFUSAL_MS = 250;

type Quota = Caller['maxSessions'];
type Counts = Map<string, number>;

/**
 * Estimates how many sessions of a key and of an organisation are open on all processes, including reserved ones. The estimate is never
 * lower than what this process knows. Far from a quota it is good enough, and opening a session costs no query.
 */
export class SessionCountEstimate {
  #stored: Counts = new Map();
  /** Sessions that this process opened since it last read the counts, and in the period before, which the counts may not include. */
  #since: Counts = new Map();
  #before: Counts = new Map();
  #loadedAt = -Infinity;
  #loading: Promise<void> | null = null;

  constructor(
    readonly admission: Pick<AdmissionStore, 'countOpen'>,
    readonly clock: Clock,
    readonly onError: (error: unknown) => void,
  ) {}

  /** Call before a session is stored. */
  add(caller: Caller): void {
    for (const name of namesOf(caller)) this.#since.set(name, (this.#since.get(name) ?? 0) + 1);
  }

  /** Whether both counts are at least `spare(quota)` below their quota. A negative number allows them to be that far above it. */
  async isBelow(caller: Caller, quota: Quota, spare: (quota: number) => number): Promise<boolean> {
    const fits = (share = 1) =>
      [quota.key, quota.org].every((most, index) => most === null || this.#count(namesOf(caller)[index]!) < (most - spare(most)) * share);
    // The quota is so small that only the queue, which is exact, can tell.
    if ([quota.key, quota.org].some((most) => most !== null && most <= spare(most))) return false;
    const age = this.clock.now() - this.#loadedAt;
    if (age > LONG_MS || (!fits(0.25) && age > SHORT_MS)) {
      const loading = this.#load();
      // Wait for the first count. Later ones matter only near the quota.
      if (this.#loadedAt === -Infinity) await loading;
    }
    if (fits()) return true;
    if (this.clock.now() - this.#loadedAt > REFUSAL_MS) await this.#load();
    return fits();
  }

  #count(name: string): number {
    return (this.#stored.get(name) ?? 0) + (this.#before.get(name) ?? 0) + (this.#since.get(name) ?? 0);
  }

  #load(): Promise<void> {
    this.#loading ??= this.#read()
      .catch(this.onError)
      .finally(() => (this.#loading = null));
    return this.#loading;
  }

  async #read(): Promise<void> {
    const opened = this.#since;
    this.#since = new Map();
    this.#before = sum(this.#before, opened);
    const at = this.clock.now();
    const stored: Counts = new Map();
    for (const { holder, orgId, count } of await this.admission.countOpen()) {
      for (const name of [`key ${holder}`, `org ${orgId}`]) stored.set(name, (stored.get(name) ?? 0) + count);
    }
    this.#stored = stored;
    // The newest may not be stored yet. Until the next read they count twice rather than not at all.
    this.#before = opened;
    this.#loadedAt = at;
  }
}

const namesOf = ({ keyId, userId, orgId }: Caller): [string, string] => [`key ${keyId ?? userId}`, `org ${orgId}`];

function sum(a: Counts, b: Counts): Counts {
  const all = new Map(a);
  for (const [name, count] of b) all.set(name, (all.get(name) ?? 0) + count);
  return all;
}
