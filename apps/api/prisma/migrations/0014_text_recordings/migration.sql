-- What the model of a text session read first, and whose the session is; until when rows of text sessions are kept.
ALTER TABLE "text_sessions"
  ADD COLUMN "org_id" TEXT,
  ADD COLUMN "prompt" TEXT,
  ADD COLUMN "prompt_messages" INTEGER NOT NULL DEFAULT 0,
  ADD COLUMN "due_at" TIMESTAMPTZ(3);
UPDATE "text_sessions" AS x SET "org_id" = s."org_id",
  "due_at" = CASE WHEN s."recorded_seq" = -1 THEN now() + interval '1 day' END
FROM "sessions" AS s WHERE s."sid" = x."sid";
-- Their sessions were deleted: they never reached an environment.
DELETE FROM "text_turns" WHERE "sid" IN (SELECT "sid" FROM "text_sessions" WHERE "org_id" IS NULL);
DELETE FROM "text_sessions" WHERE "org_id" IS NULL;
ALTER TABLE "text_sessions" ALTER COLUMN "org_id" SET NOT NULL;
-- Words of recordings that are complete are in their rollouts.
UPDATE "text_turns" AS t SET "said" = NULL FROM "text_sessions" AS x WHERE x."sid" = t."sid" AND x."due_at" IS NOT NULL AND t."said" IS NOT NULL;

CREATE INDEX "text_sessions_org_id_created_at_idx" ON "text_sessions"("org_id", "created_at");
-- Partial, which Prisma cannot say: what is not complete has no date yet.
CREATE INDEX "text_sessions_due_at_idx" ON "text_sessions"("due_at") WHERE "due_at" IS NOT NULL;
