import type { ClientBase } from 'pg';
import { LANES } from '../../apps/api/src/store/derive/derive.loop.ts';
import { LANE_LOCK } from '../../apps/api/src/store/derive/lane-locks.ts';

/** Waits until no process derives in the background, and prevents it until `releaseLanes`. Reads still derive. */
export async function holdLanes(client: Pick<ClientBase, 'query'>): Promise<void> {
  for (const lane of LANES) await client.query('SELECT pg_advisory_lock($1, $2)', [LANE_LOCK, lane]);
}

export async function releaseLanes(client: Pick<ClientBase, 'query'>): Promise<void> {
  for (const lane of LANES) await client.query('SELECT pg_advisory_unlock($1, $2)', [LANE_LOCK, lane]);
}
