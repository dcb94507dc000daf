/**
 * Whether a scored rollout `r` is a success, of run `u` and with the rewards' scale `x` of its run and environment (dashboard.md 14.3): the owner's
 * threshold, else 1 where all rewards lie in [0, 1], else above 0.
 */
export const SOLVED = `CASE WHEN jsonb_typeof(u.settings->'successThreshold') = 'number' THEN r.reward >= (u.settings->>'successThreshold')::float8
  WHEN COALESCE(x.unit_rewards, true) THEN r.reward >= 1 ELSE r.reward > 0 END`;
