-- A rollout that the environment or the infrastructure interrupted has no reward (docs/reference/metrics.md#canonical-reward). What its steps earned until
-- then moves to "partial_reward". Stop reasons 6 to 10: env_error, infra_error, timeout, aborted, cancelled.
ALTER TABLE "rollouts" ADD COLUMN "partial_reward" DOUBLE PRECISION;
UPDATE "rollouts" SET "partial_reward" = "reward", "reward" = NULL, "max_reward" = NULL WHERE "stop" BETWEEN 6 AND 10 AND "reward" IS NOT NULL;
-- The sums of rollouts that failed by their failure class were never stored: they are normalised again.
UPDATE "rollout_heads" SET "dirty" = true, "revision" = "revision" + 1 WHERE "failure_class" IS NOT NULL;
-- Figures of steps with such rollouts are emptied until they are computed again, so that no read shows the old ones.
WITH "changed" AS MATERIALIZED (
  SELECT "run_seq", "phase", "step" FROM "step_rollups"
  WHERE "env_id" = 0 AND ("errors" > 0 OR "figures"->'stops' ?| ARRAY['env_error', 'infra_error', 'timeout', 'aborted', 'cancelled'])),
"groups" AS (
  UPDATE "rollout_groups" g SET "scored" = 0, "successes" = 0, "sum" = 0, "sum_squares" = 0, "min" = NULL, "max" = NULL FROM "changed" c
  WHERE (g."run_seq", g."phase", g."step") = (c."run_seq", c."phase", c."step"))
UPDATE "step_rollups" s SET "scored" = 0, "reward_sum" = 0, "windows" = NULL,
  "figures" = s."figures" || '{"canonical": {}, "lenses": {}, "histograms": {}, "rewards": null, "histogram": {"low": 0, "high": 1, "counts": []}}'
FROM "changed" c WHERE (s."run_seq", s."phase", s."step") = (c."run_seq", c."phase", c."step");
-- All steps get the sizes of their groups.
INSERT INTO "dirty_steps" ("run_seq", "phase", "step") SELECT "run_seq", "phase", "step" FROM "step_rollups" WHERE "env_id" = 0 ON CONFLICT DO NOTHING;
UPDATE "runs" SET "version" = "version" + 1;
