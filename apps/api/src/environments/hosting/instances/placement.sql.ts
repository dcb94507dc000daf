import { MicroBatcher } from '@palestra/kit';
import type pg from 'pg';
import { retryDatabase } from '../../../platform/database/database-retry.ts';
import { inTransaction } from '../../../platform/database/transaction.ts';
import { lockPlacement, WAITING } from './instance.sql.ts';

/** The instance that serves a session. */
export interface Place {
  instanceId: string;
  endpoint: string;
}

/**
 * Gives each session of `$2` a place, in their order. Sessions are spread over the oldest instances that together have room for all, so that
 * the others become idle; at least over `$4` instances, which run anyway. Without room a session is stored as waiting. The rows of sessions
 * are the count, so a session that ends frees its place by that alone, except on instances that take a number of sessions and no more. The
 * placement lock makes the count exact. Plans:
 * environment_instances_version_id_idx, sessions_instance_id_idx, sessions_pkey.
 */
const PLACE = `
  WITH ready AS MATERIALIZED (
    SELECT i.id, i.endpoint, i.created_at, i.sessions_left,
      (SELECT count(*) FROM sessions AS s WHERE s.instance_id = i.id AND s.ended_at IS NULL AND NOT s.sid = ANY($2::text[]))::int AS used
    FROM environment_instances AS i WHERE i.version_id = $1 AND i.state = 'ready' AND i.stopped_at IS NULL AND i.endpoint IS NOT NULL
      AND i.sessions_left IS DISTINCT FROM 0),
  ranked AS (SELECT *, row_number() OVER (ORDER BY created_at, id) AS age, sum(used) OVER () AS total FROM ready),
  chosen AS (SELECT * FROM ranked WHERE age <= greatest($4::int, ceil((total + cardinality($2::text[]))::numeric / $3::int))),
  places AS (
    SELECT c.id, c.endpoint, row_number() OVER (ORDER BY c.used + k, c.age) AS ord
    FROM chosen AS c CROSS JOIN LATERAL generate_series(1, least($3::int - c.used, c.sessions_left, cardinality($2::text[]))) AS k),
  taken AS (
    UPDATE environment_instances AS i SET sessions_left = i.sessions_left - p.count
    FROM (SELECT id, count(*)::int AS count FROM places WHERE ord <= cardinality($2::text[]) GROUP BY id) AS p
    WHERE i.id = p.id AND i.sessions_left IS NOT NULL)
  UPDATE sessions AS s SET instance_id = coalesce(p.id, '${WAITING}'::uuid)
  FROM unnest($2::text[]) WITH ORDINALITY AS a(sid, ord) LEFT JOIN places AS p ON p.ord = a.ord
  WHERE s.sid = a.sid AND s.ended_at IS NULL
  RETURNING s.sid, p.id AS instance_id, p.endpoint`;

interface PlacedRow {
  sid: string;
  instance_id: string | null;
  endpoint: string | null;
}

const RELEASE = `UPDATE sessions SET instance_id = NULL WHERE sid = $1 AND (instance_id = $2 OR instance_id = '${WAITING}')`;

const BATCH = { maxItems: 200, maxAgeMs: 0, maxQueued: 50_000, concurrency: 1 };

/** Places of one version. Sessions that ask at the same time share one transaction. */
export class Placement {
  readonly #pool: pg.Pool;
  readonly #batches: MicroBatcher<string, Place | 'full' | 'gone'>;

  /** `settings`: read for each batch. */
  constructor(pool: pg.Pool, versionId: string, settings: () => { concurrency: number; minWarm: number }) {
    this.#pool = pool;
    this.#batches = new MicroBatcher({ ...BATCH, flush: (sids) => this.#place(versionId, settings(), sids) });
  }

  /** `full`: no ready instance has room, and the session is stored as waiting. `gone`: there is no such living session. */
  take(sid: string): Promise<Place | 'full' | 'gone'> {
    return this.#batches.add(sid);
  }

  /** The session got no episode on that instance, or waits no more. `instanceId`: null when it had none. */
  async release(sid: string, instanceId: string | null): Promise<void> {
    await retryDatabase(() => this.#pool.query({ name: 'place_release', text: RELEASE, values: [sid, instanceId ?? WAITING] }));
  }

  async #place(versionId: string, { concurrency, minWarm }: { concurrency: number; minWarm: number }, sids: string[]) {
    const rows = await retryDatabase(() =>
      inTransaction(this.#pool, async (client) => {
        await lockPlacement(client, [versionId]);
        return (await client.query<PlacedRow>({ name: 'place', text: PLACE, values: [versionId, sids, concurrency, minWarm] })).rows;
      }),
    );
    const placed = new Map(rows.map((row) => [row.sid, row]));
    return sids.map((sid) => {
      const row = placed.get(sid);
      if (row === undefined) return 'gone';
      return row.instance_id === null ? 'full' : { instanceId: row.instance_id, endpoint: row.endpoint! };
    });
  }
}
