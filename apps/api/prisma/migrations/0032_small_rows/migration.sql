-- At most 3 kB per short rollout. A minute per million rollouts, most of it for the update of verdicts and for the new table of texts; nothing wide is rewritten.

-- What was received, written once: derivation and verification no longer write a new version of the wide row.
ALTER TABLE "rollout_meta" RENAME TO "rollout_starts";
ALTER TABLE "rollout_starts" RENAME CONSTRAINT "rollout_meta_pkey" TO "rollout_starts_pkey";

-- Rules of fields, the same few sets for all rollouts.
CREATE TABLE "rollout_rules" (
  "id" INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  "hash" BYTEA NOT NULL,
  "rules" JSONB NOT NULL
);
CREATE UNIQUE INDEX "rollout_rules_hash_key" ON "rollout_rules"("hash");
INSERT INTO "rollout_rules" ("hash", "rules")
  SELECT sha256(convert_to("rules"::text, 'UTF8')), "rules"
  FROM (SELECT DISTINCT "rules" - 'telemetry' AS "rules" FROM "rollout_starts" WHERE "rules" IS NOT NULL) r;

CREATE TABLE "rollout_meta" AS
  SELECT s."rollout_seq", r."id" AS "rules_id", s."rollout_name", s."source", s."model", s."stop_raw", s."author", s."sid",
    s."rules"->>'telemetry' AS "telemetry_rule", s."ledger_task"
  FROM "rollout_starts" s LEFT JOIN "rollout_rules" r ON r."rules" = s."rules" - 'telemetry'
  WHERE s."rules" IS NOT NULL ORDER BY s."rollout_seq";
ALTER TABLE "rollout_meta" ADD CONSTRAINT "rollout_meta_pkey" PRIMARY KEY ("rollout_seq");
ALTER TABLE "rollout_starts" DROP COLUMN "rollout_name", DROP COLUMN "source", DROP COLUMN "model", DROP COLUMN "stop_raw", DROP COLUMN "author",
  DROP COLUMN "sid", DROP COLUMN "rules", DROP COLUMN "ledger_task";
CREATE INDEX "rollout_meta_sid_idx" ON "rollout_meta"("sid") WHERE "sid" IS NOT NULL;

-- The comparison with the ledger writes the head anyway, and wrote the narrow row for the verdict only. 0 is "unverified", that of most uploads.
ALTER TABLE "rollout_heads" ADD COLUMN "verdict" SMALLINT DEFAULT 0;
ALTER TABLE "rollout_heads" ALTER COLUMN "verdict" DROP DEFAULT;
UPDATE "rollout_heads" h SET "verdict" = x."verdict"
  FROM (SELECT "seq", r."verdict" FROM "rollout_heads" LEFT JOIN "rollouts" r USING ("seq")) x WHERE x."seq" = h."seq" AND x."verdict" IS DISTINCT FROM 0;
ALTER TABLE "rollouts" DROP COLUMN "verdict", RESET (fillfactor);
