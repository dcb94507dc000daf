-- When a trainer or a member said that the run is over (docs/reference/alerts.md#the-end-of-a-run).
ALTER TABLE "runs" ADD COLUMN "finished_at" TIMESTAMPTZ(3);

-- Every condition names an environment, or null for all.
UPDATE "alerts" SET "condition" = "condition" || '{"environment": null}';

-- Lists of annotations, newest first: of the organisation, a run or a rollout, with a tag or without.
CREATE INDEX "annotations_org_id_created_at_id_idx" ON "annotations" ("org_id", "created_at", "id");
CREATE INDEX "annotations_org_id_tag_created_at_id_idx" ON "annotations" ("org_id", "tag", "created_at", "id");
CREATE INDEX "annotations_run_seq_created_at_id_idx" ON "annotations" ("run_seq", "created_at", "id");
DROP INDEX "annotations_run_seq_idx";
CREATE INDEX "annotations_run_seq_idx" ON "annotations" ("run_seq", "tag", "created_at", "id");
DROP INDEX "annotations_rollout_seq_idx";
CREATE INDEX "annotations_rollout_seq_idx" ON "annotations" ("rollout_seq", "created_at", "id");
