/**
 * Whether a scored rollout `r` succeeds (docs/reference/metrics.md#success): the threshold of the owner of run `u`, else 1 where all rewards of
 * its run and environment `x` lie in [0, 1], else above 0.
 */
export const solved = (
  reward: string,
) => `CASE WHEN jsonb_typeof(u.settings->'successThreshold') = 'number' THEN ${reward} >= (u.settings->>'successThreshold')::float8
  WHEN COALESCE(x.unit_rewards, true) THEN ${reward} >= 1 ELSE ${reward} > 0 END`;
export const SOLVED = solved('r.reward');
