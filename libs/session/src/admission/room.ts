import type { Clock } from '@palestra/kit';
import type { AdmissionStore } from '../ports/admission-store.port.ts';
import type { Caller } from '../ports/directory.port.ts';

/** Counts are read this often at most while somebody has much of what they may, and at least while sessions are opened. */
const SHORT_MS = 1_000;
const LONG_MS = 10_000;
/** Beyond it, a refusal asks again this soon. */
const REFUSAL_MS = 250;

type Quota = Caller['maxSessions'];
type Counts = Map<string, number>;

/**
 * About how many sessions live of a key and of an organisation, over all processes, reserved ones included; never fewer than this process
 * knows. Far from a quota that is enough, and an opened session costs no query.
 */
export class RoomEstimate {
  #stored: Counts = new Map();
  /** Opened here since the counts were asked for, and in the span before: those may not have been stored by then. */
  #since: Counts = new Map();
  #before: Counts = new Map();
  #loadedAt = -Infinity;
  #loading: Promise<void> | null = null;

  constructor(
    readonly admission: Pick<AdmissionStore, 'living'>,
    readonly clock: Clock,
    readonly onError: (error: unknown) => void,
  ) {}

  /** A session is about to be stored. */
  note(caller: Caller): void {
    for (const name of namesOf(caller)) this.#since.set(name, (this.#since.get(name) ?? 0) + 1);
  }

  /** Whether both have at least `spare(quota)` sessions fewer than their quota. A negative number is how far they may be beyond it. */
  async has(caller: Caller, quota: Quota, spare: (quota: number) => number): Promise<boolean> {
    const fits = (share = 1) =>
      [quota.key, quota.org].every((most, index) => most === null || this.#count(namesOf(caller)[index]!) < (most - spare(most)) * share);
    // So near to none that only the queue can tell.
    if ([quota.key, quota.org].some((most) => most !== null && most <= spare(most))) return false;
    const age = this.clock.now() - this.#loadedAt;
    if (age > LONG_MS || (!fits(0.25) && age > SHORT_MS)) {
      const loading = this.#load();
      // The first count is waited for; later ones only matter near the quota.
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
    for (const { holder, orgId, count } of await this.admission.living()) {
      for (const name of [`key ${holder}`, `org ${orgId}`]) stored.set(name, (stored.get(name) ?? 0) + count);
    }
    this.#stored = stored;
    // The last of them may be on their way to the store: until the next count they count twice rather than not at all.
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
