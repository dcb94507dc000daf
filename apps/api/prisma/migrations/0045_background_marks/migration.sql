-- Background passes look at what changed, and no longer at all packs and all runs. The first pass looks at every pack once.
ALTER TABLE "transcript_packs" ADD COLUMN "merge_due" BOOLEAN NOT NULL DEFAULT true;
CREATE INDEX "transcript_packs_merge_due_idx" ON "transcript_packs"("org_id", "run_seq") WHERE "merge_due";
CREATE INDEX "transcript_packs_old_idx" ON "transcript_packs"("id") WHERE "blob_key" LIKE 'orgs/%/rollouts/%';
CREATE INDEX "runs_inference_due_idx" ON "runs"("seq") WHERE "inference_due";
