import type { RunSummary, RunView } from '@palestra/protocol';

/** Answers for readers with a share link: without what members wrote about a run. */

export const guestRun = (run: RunView): RunView => ({ ...run, tags: [], settings: {}, retention_days: null });
/** Advisories quote errors, which can have the address of an environment's server, and lead to rollouts. */
export const guestSummary = (summary: RunSummary): RunSummary => ({ ...summary, advisories: [] });
