import type { ComparedRuns, RolloutHeader, RolloutList, RolloutView, RunChangeBody, RunList, RunView } from '@palestra/protocol';
import type { Connection } from './connection.ts';
import { type ListOptions, query } from './environments.ts';

/** Runs and their rollouts. */
export class Runs {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async list(options: Omit<ListOptions, 'owner'> = {}): Promise<RunList> {
    return (await this.#connection.json({ path: `/v1/runs${query({ ...options })}` })) as RunList;
  }

  async get(runId: string): Promise<RunView> {
    return (await this.#connection.json({ path: `/v1/runs/${encodeURIComponent(runId)}` })) as RunView;
  }

  /** Changes settings, tags or retention, or marks the run as finished: send all rollouts before. */
  async change(runId: string, change: RunChangeBody): Promise<RunView> {
    return (await this.#connection.json({ method: 'PATCH', path: `/v1/runs/${encodeURIComponent(runId)}`, body: change })) as RunView;
  }

  /** Compares two to four runs, by name or id, with the first one. `steps`: `common` (default), `all`, or a range like `10..20`. */
  async compare(
    runs: readonly string[],
    options: { steps?: string; env?: string; phase?: string; den?: string } = {},
  ): Promise<ComparedRuns> {
    const search = new URLSearchParams(query(options));
    for (const run of runs) search.append('runs', run);
    return (await this.#connection.json({ path: `/v1/compare?${search}` })) as ComparedRuns;
  }

  /** A page of rollouts, newest first. `cursor`: `next` of the previous page. `q`: a query (docs/query.md). */
  async rollouts(runId: string, options: { limit?: number; offset?: number; cursor?: string; q?: string } = {}): Promise<RolloutList> {
    return (await this.#connection.json({ path: `/v1/runs/${encodeURIComponent(runId)}/rollouts${query(options)}` })) as RolloutList;
  }

  /** Erases a rollout. */
  async deleteRollout(rolloutId: string): Promise<void> {
    await this.#connection.json({ method: 'DELETE', path: `/v1/rollouts/${encodeURIComponent(rolloutId)}` });
  }

  /** A rollout without its messages. */
  async rolloutHeader(rolloutId: string): Promise<RolloutHeader> {
    return (await this.#connection.json({ path: `/v1/rollouts/${encodeURIComponent(rolloutId)}/header` })) as RolloutHeader;
  }

  /** A rollout with all messages. */
  async rollout(rolloutId: string): Promise<RolloutView> {
    return (await this.#connection.json({ path: `/v1/rollouts/${encodeURIComponent(rolloutId)}` })) as RolloutView;
  }
}
