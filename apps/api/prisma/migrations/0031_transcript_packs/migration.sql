-- Transcripts of many rollouts are one object, a pack (ADR 27). An existing object becomes a pack of one rollout, which background work merges.
-- Half a minute per million sealed rollouts.

-- A process of an older version may still seal: it would store a pointer after the copy below and before the table is dropped, and delete the rows.
LOCK TABLE "rollout_transcripts" IN ACCESS EXCLUSIVE MODE;
CREATE TABLE "transcript_packs" (
  "id" BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  "blob_key" TEXT NOT NULL,
  "org_id" UUID NOT NULL,
  "run_seq" INTEGER,
  "bytes" BIGINT NOT NULL,
  "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  "dirty_since" TIMESTAMPTZ(3)
);
INSERT INTO "transcript_packs" ("blob_key", "org_id", "run_seq", "bytes", "created_at")
  SELECT t."blob_key", h."org_id", h."run_seq", t."bytes", t."sealed_at" FROM "rollout_transcripts" t JOIN "rollout_heads" h ON h."seq" = t."rollout_seq"
  ORDER BY t."rollout_seq";
CREATE UNIQUE INDEX "transcript_packs_blob_key_key" ON "transcript_packs"("blob_key");
CREATE INDEX "transcript_packs_run_idx" ON "transcript_packs"("org_id", "run_seq");
CREATE INDEX "transcript_packs_dirty_idx" ON "transcript_packs"("dirty_since") WHERE "dirty_since" IS NOT NULL;

-- `chunks`: JSON arrays [first, last, count, bytes, ids] from byte `at` of the pack on.
CREATE TABLE "packed_transcripts" AS
  SELECT t."rollout_seq", p."id" AS "pack", 0::bigint AS "at", t."messages", t."bytes", t."sealed_at",
    (SELECT json_agg(json_build_array(c->'first', c->'last', c->'count', c->'bytes', c->'ids') ORDER BY (c->>'at')::bigint)::text
     FROM jsonb_array_elements(t."chunks") c) AS "chunks"
  FROM "rollout_transcripts" t JOIN "transcript_packs" p USING ("blob_key") ORDER BY t."rollout_seq";
DROP TABLE "rollout_transcripts";
ALTER TABLE "packed_transcripts" RENAME TO "rollout_transcripts";
ALTER TABLE "rollout_transcripts" ALTER COLUMN "rollout_seq" SET NOT NULL, ALTER COLUMN "pack" SET NOT NULL, ALTER COLUMN "at" SET NOT NULL,
  ALTER COLUMN "messages" SET NOT NULL, ALTER COLUMN "bytes" SET NOT NULL, ALTER COLUMN "sealed_at" SET NOT NULL,
  ALTER COLUMN "sealed_at" SET DEFAULT CURRENT_TIMESTAMP, ALTER COLUMN "chunks" SET NOT NULL,
  ADD CONSTRAINT "rollout_transcripts_pkey" PRIMARY KEY ("rollout_seq");
CREATE INDEX "rollout_transcripts_pack_idx" ON "rollout_transcripts"("pack");
