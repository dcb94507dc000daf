-- Why a rollout failed: the fingerprint of its cause (libs/rollouts/src/failure), the message that shows it, and its tool. Rows from before have 0, "not derived
-- yet", without a rewrite of the table, until the new version of the normaliser has derived them in the background.
ALTER TABLE "rollouts" ADD COLUMN "cause" BIGINT DEFAULT 0, ADD COLUMN "cause_index" INTEGER, ADD COLUMN "cause_kind" SMALLINT,
  ADD COLUMN "cause_tool" TEXT;
ALTER TABLE "rollouts" ALTER COLUMN "cause" DROP DEFAULT;
CREATE INDEX "rollouts_run_cause_idx" ON "rollouts" ("run_seq", "cause", "seq")
  INCLUDE ("step", "phase", "env_id", "reward") WHERE "cause" IS NOT NULL;
