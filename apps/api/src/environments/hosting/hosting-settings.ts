import { hostingSettingsSchema } from '@palestra/protocol/schemas';

/** How many sessions the instances of a version take. */
export interface HostedScale {
  /** Sessions of one instance. */
  concurrency: number;
  minWarm: number;
  /** Most instances. */
  max: number;
}

/** Servers at URLs run anyway: each of them is an instance. */
export function hostingOf(environment: { hosting: unknown }, version: { artifact: unknown }): HostedScale {
  const { concurrency, min_warm: minWarm, max } = hostingSettingsSchema.parse(environment.hosting ?? {});
  const { kind, urls } = (version.artifact ?? {}) as { kind?: unknown; urls?: unknown };
  return kind === 'urls' && Array.isArray(urls) ? { concurrency, minWarm: urls.length, max: urls.length } : { concurrency, minWarm, max };
}
