import { hostingSettingsSchema } from '@palestra/protocol/schemas';

/** How many sessions the instances of a version take. */
export interface HostedScale {
  /** Sessions of one instance. */
  concurrency: number;
  minWarm: number;
  /** Most instances. */
  max: number;
}

/** Each session of Harbor tasks is a container with the limits of an instance. */
const MOST_HARBOR_SESSIONS = 32;

/** Sessions of one instance. `kind`: of its artifact. */
export const sessionsOf = (concurrency: number, kind: unknown): number =>
  kind === 'harbor' ? Math.min(concurrency, MOST_HARBOR_SESSIONS) : concurrency;

/** Servers at URLs run anyway: each of them is an instance. */
export function hostingOf(environment: { hosting: unknown }, version: { artifact: unknown }): HostedScale {
  const { concurrency: wanted, min_warm: minWarm, max } = hostingSettingsSchema.parse(environment.hosting ?? {});
  const { kind, urls } = (version.artifact ?? {}) as { kind?: unknown; urls?: unknown };
  const concurrency = sessionsOf(wanted, kind);
  return kind === 'urls' && Array.isArray(urls) ? { concurrency, minWarm: urls.length, max: urls.length } : { concurrency, minWarm, max };
}
