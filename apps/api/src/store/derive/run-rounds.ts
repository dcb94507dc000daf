import type { Lane } from './derive.sql.ts';

/** Runs after `after`, up to and with `until`. */
export interface RunRange {
  after: number;
  until: number;
}

interface Selection<Head> {
  /** The first rollouts that wait, in the order of runs: as many as a batch takes. */
  select(range: RunRange): Promise<Head[]>;
  /** The newest run that waits; 0 = none. */
  selectNewest(): Promise<number>;
}

/**
 * Gives the runs that wait in a lane their batches in rounds. In a round each run gets one batch, or what it needs of one, so that a run with
 * many rollouts does not delay the others. A round ends at the run that was the newest when it began, so that new runs do not delay older ones.
 */
export class RunRounds {
  readonly #ranges = new Map<number, RunRange>();

  /** The next batch of the lane, empty if nothing waits. */
  async next<Head extends { run_seq: number }>(lane: Lane, { select, selectNewest }: Selection<Head>): Promise<Head[]> {
    let { after, until } = this.#ranges.get(lane.number) ?? { after: 0, until: 0 };
    let heads = after < until ? await select({ after, until }) : [];
    if (heads.length === 0) {
      until = await selectNewest();
      heads = until > 0 ? await select({ after: 0, until }) : [];
    }
    const runs = heads.map(({ run_seq }) => run_seq);
    const last = Math.max(0, ...runs);
    // The batch may end within its last run. That run begins the next batch, unless it had this one alone.
    after = Math.min(...runs) < last ? last - 1 : last;
    this.#ranges.set(lane.number, { after, until });
    return heads;
  }
}
