import { z } from 'zod';
import { type ErrorCode, PalestraError } from '@palestra/protocol';

/** The key and organisation whose limits apply. */
export interface Holder {
  orgId: string;
  userId: string;
  keyId: string | null;
}

interface Limit {
  /** Limit of an API key, or of a user with a browser session; absent = only organisations are limited. */
  key?: number;
  org: number;
  /** Object of the sentence "This API key has 20000 ...". */
  noun: string;
  /** For docs/operations.md: what is counted. */
  text: string;
}

/**
 * Default limits of a key and an organisation; `PALESTRA_MAX_{NAME}_PER_{KEY|ORG}` overrides them. A training run keeps ten thousand
 * sessions open with one key. docs/operations.md has this table; tests/limits-doc.spec.ts compares.
 */
export const LIMITS = {
  sessions: { key: 20_000, org: 50_000, noun: 'sessions', text: 'open sessions; more wait in the queue' },
  sockets: { key: 20_000, org: 50_000, noun: 'WebSockets', text: 'open WebSockets, per replica' },
  streams: { key: 10_000, org: 20_000, noun: 'event streams', text: 'open event streams, per replica' },
  uploads: { key: 64, org: 128, noun: 'uploads', text: 'uploads in flight, per replica; more wait for a moment' },
  keys: { org: 1_000, noun: 'API keys', text: 'API keys that work, or did within the last day' },
  members: { org: 1_000, noun: 'members', text: 'members' },
  alerts: { org: 100, noun: 'alerts', text: 'alerts' },
  deploys: { org: 20, noun: 'deploys in progress', text: 'deploys that wait or run' },
  webhooks: { org: 20, noun: 'webhooks', text: 'webhooks' },
  instances: { org: 100, noun: 'instances of environments', text: 'instances of deployed environments' },
  sandboxes: { org: 100, noun: 'sandboxes', text: 'sandboxes' },
  sandbox_cpus: { org: 64, noun: 'processors in its sandboxes', text: 'processors of sandboxes with their sidecars' },
  sandbox_memory_gb: {
    org: 256,
    noun: 'gigabytes of memory in its sandboxes',
    text: 'gigabytes of memory of sandboxes with their sidecars',
  },
  organisations: { org: 50, noun: 'organisations', text: 'organisations that its owners created, with those created from these' },
} as const satisfies Record<string, Limit>;

export type LimitName = keyof typeof LIMITS;
export type Limits = Record<LimitName, { key: number; org: number }>;

export const limitVariable = (name: LimitName, of: 'key' | 'org'): string => `PALESTRA_MAX_${name.toUpperCase()}_PER_${of.toUpperCase()}`;

const entries = (Object.entries(LIMITS) as [LimitName, Limit][]).flatMap(([name, limit]) =>
  (['key', 'org'] as const).flatMap((of) => (limit[of] === undefined ? [] : [{ name, of, value: limit[of] }])),
);

/** The variables of the configuration that set limits. */
export const limitSchema: Record<string, z.ZodDefault<z.ZodCoercedNumber>> = Object.fromEntries(
  entries.map(({ name, of, value }) => [limitVariable(name, of), z.coerce.number().int().positive().default(value)]),
);

/** `values`: the output of `limitSchema`. A missing value means no limit. */
export function readLimits(values: Record<string, unknown>): Limits {
  const limits = Object.fromEntries(Object.keys(LIMITS).map((name) => [name, { key: Infinity, org: Infinity }])) as Limits;
  for (const { name, of } of entries) limits[name][of] = (values[limitVariable(name, of)] as number | undefined) ?? Infinity;
  return limits;
}

/** The lower of an owner's limit and the operator's; null = no limit. */
export const atMost = (ceiling: number | null, wanted: number | null): number | null =>
  wanted === null ? ceiling : ceiling === null ? wanted : Math.min(wanted, ceiling);

/** The error for one more than the limit allows. */
export function limitError(name: LimitName, of: 'key' | 'org', most: number, code: ErrorCode = 'limit_reached'): PalestraError {
  const who = of === 'key' ? 'This API key' : 'This organisation';
  const detail = `${who} has ${most} ${LIMITS[name].noun} already, the maximum of this server. Close some, or ask the operator to raise ${limitVariable(name, of)}.`;
  return new PalestraError(code, { detail, retryAfterSeconds: 5 });
}

interface Waiter {
  name: LimitName;
  holder: Holder;
  grant: (release: () => void) => void;
}

/** Counts sockets, streams and uploads in progress on this replica, by key and by organisation. */
export class InFlight {
  readonly #counts = new Map<string, number>();
  readonly #waiters: Waiter[] = [];

  constructor(readonly limits: Limits) {}

  /** Counts one more until the returned function is called. Throws `limit_reached` when the key or the organisation is at its limit. */
  enter(name: LimitName, holder: Holder): () => void {
    const full = this.#full(name, holder);
    if (full !== null) throw limitError(name, full, this.limits[name][full]);
    return this.#add(name, holder);
  }

  /** As `enter`, but waits until there is room. Throws `code` when there is none within `patienceMs`, or when four times the limit wait. */
  async enterWhenFree(name: LimitName, holder: Holder, patienceMs: number, code: ErrorCode): Promise<() => void> {
    const full = this.#full(name, holder);
    if (full === null) return this.#add(name, holder);
    const most = this.limits[name][full];
    const waiting = this.#waiters.filter((waiter) => waiter.name === name && keyOf(full, waiter.holder) === keyOf(full, holder));
    if (waiting.length >= most * 4) throw limitError(name, full, most, code);
    return new Promise<() => void>((resolve, reject) => {
      const waiter: Waiter = {
        name,
        holder,
        grant: (release) => {
          clearTimeout(timer);
          resolve(release);
        },
      };
      const timer = setTimeout(() => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
        reject(limitError(name, full, most, code));
      }, patienceMs);
      this.#waiters.push(waiter);
    });
  }

  #full(name: LimitName, holder: Holder): 'key' | 'org' | null {
    for (const of of ['key', 'org'] as const) {
      if ((this.#counts.get(countOf(name, of, holder)) ?? 0) >= this.limits[name][of]) return of;
    }
    return null;
  }

  #add(name: LimitName, holder: Holder): () => void {
    const counted = (['key', 'org'] as const).map((of) => countOf(name, of, holder));
    for (const count of counted) this.#counts.set(count, (this.#counts.get(count) ?? 0) + 1);
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      for (const count of counted) {
        const left = this.#counts.get(count)! - 1;
        if (left === 0) this.#counts.delete(count);
        else this.#counts.set(count, left);
      }
      this.#admit();
    };
  }

  /** Admits waiters in their order, as far as they fit. */
  #admit(): void {
    for (let at = 0; at < this.#waiters.length;) {
      const { name, holder, grant } = this.#waiters[at]!;
      if (this.#full(name, holder) !== null) at += 1;
      else {
        this.#waiters.splice(at, 1);
        grant(this.#add(name, holder));
      }
    }
  }
}

const keyOf = (of: 'key' | 'org', { orgId, keyId, userId }: Holder): string => (of === 'org' ? orgId : (keyId ?? `${orgId} ${userId}`));
const countOf = (name: LimitName, of: 'key' | 'org', holder: Holder): string => `${name} ${of} ${keyOf(of, holder)}`;
