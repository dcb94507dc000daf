-- There are message rows that no transcript holds: of a new rollout, or of one that grew after it was sealed.
ALTER TABLE "rollout_heads" ADD COLUMN "unsealed" BOOLEAN NOT NULL DEFAULT true;
DROP INDEX "rollout_heads_unsealed_idx";
CREATE INDEX "rollout_heads_unsealed_idx" ON "rollout_heads"("seq") WHERE "unsealed";
CREATE INDEX "runs_deleted_idx" ON "runs"("seq") WHERE "deleted_at" IS NOT NULL;

-- Objects that nothing points at, or nothing points at yet: written down before the object is, so that a crash leaves none unknown.
-- A key that ends in a slash stands for everything below it. `doomed`: to be deleted now; no seal may use it any more.
CREATE TABLE "rollout_garbage" (
  "blob_key" TEXT NOT NULL PRIMARY KEY,
  "rollout_seq" BIGINT NOT NULL,
  "doomed" BOOLEAN NOT NULL DEFAULT false,
  "since" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE INDEX "rollout_garbage_rollout_seq_idx" ON "rollout_garbage"("rollout_seq");
