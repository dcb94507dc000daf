-- By run: a lane of search reads only its own runs, however many rollouts of others wait.
DROP INDEX "rollout_heads_unsearched_idx";
CREATE INDEX "rollout_heads_unsearched_idx" ON "rollout_heads"("run_seq", "seq") WHERE "unsearched" AND "run_seq" IS NOT NULL;
-- Rollouts that were sealed before they were searchable: few, or none.
CREATE INDEX "rollout_heads_late_idx" ON "rollout_heads"("seq") WHERE "unsearched" AND "run_seq" IS NOT NULL AND "sealed_at" IS NOT NULL;
