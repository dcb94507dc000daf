/** In a larger group nobody looks for a sample by its number. */
const MAX_SAMPLES = 512;

/**
 * The sample of a rollout of the table's alias: as it is told, else the place in which it came into its group (dashboard.md 2.3). The latter
 * is not stored, since it changes when one that came before is told late, or goes. Plan: rollouts_run_group_idx, bounded.
 */
export const sampleSql = (row: string): string =>
  `COALESCE(${row}.sample_idx, CASE WHEN ${row}.group_key IS NOT NULL THEN NULLIF((SELECT count(*) FROM (SELECT FROM rollouts earlier
    WHERE earlier.run_seq = ${row}.run_seq AND earlier.group_key = ${row}.group_key AND earlier.phase = ${row}.phase AND earlier.seq < ${row}.seq
    LIMIT ${MAX_SAMPLES}) s)::int, ${MAX_SAMPLES}) END)`;
