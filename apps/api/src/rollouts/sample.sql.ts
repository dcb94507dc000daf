/** In larger groups the sample is not computed. */
const MAX_SAMPLES = 512;

/**
 * The sample of a rollout of the table's alias: the reported number, else the order of arrival in its group
 * (docs/reference/metrics.md#fill-rules). The order is not stored, because a late or deleted rollout changes it. Plan:
 * rollouts_run_group_idx, bounded.
 */
export const sampleSql = (row: string): string =>
  `COALESCE(${row}.sample_idx, CASE WHEN ${row}.group_key IS NOT NULL THEN NULLIF((SELECT count(*) FROM (SELECT FROM rollouts earlier
    WHERE earlier.run_seq = ${row}.run_seq AND earlier.group_key = ${row}.group_key AND earlier.phase = ${row}.phase AND earlier.seq < ${row}.seq
    LIMIT ${MAX_SAMPLES}) s)::int, ${MAX_SAMPLES}) END)`;
