-- Messages that others came before may still be on their way: until then they are not said to be missing (dashboard.md 2.6), and the rollout is normalised again.
ALTER TABLE "rollout_heads" ADD COLUMN "gaps_at" TIMESTAMPTZ(3);
CREATE INDEX "rollout_heads_gaps_at_idx" ON "rollout_heads"("gaps_at") WHERE "gaps_at" IS NOT NULL;
