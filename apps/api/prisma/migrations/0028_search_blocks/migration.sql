-- Messages of a run are searched block by block (ADR 14). Existing rows get their blocks here: about two minutes per million messages.
-- Rows that a process of an older version would write meanwhile would be lost.
LOCK TABLE "rollout_search" IN ACCESS EXCLUSIVE MODE;

CREATE TABLE "rollout_search_blocked" AS
  SELECT s."rollout_seq",
    h."run_seq"::bigint << 32 | (sum(1 + length(s."words") / 256) OVER (PARTITION BY h."run_seq" ORDER BY s."rollout_seq", s."index") - 1) / 256 AS "block",
    s."index", s."words"
  FROM "rollout_search" s JOIN "rollout_heads" h ON h."seq" = s."rollout_seq" WHERE h."run_seq" IS NOT NULL ORDER BY 1, 3;
DROP TABLE "rollout_search";
ALTER TABLE "rollout_search_blocked" RENAME TO "rollout_search";
ALTER TABLE "rollout_search" ALTER COLUMN "rollout_seq" SET NOT NULL, ALTER COLUMN "block" SET NOT NULL, ALTER COLUMN "index" SET NOT NULL,
  ALTER COLUMN "words" SET NOT NULL, ADD CONSTRAINT "rollout_search_pkey" PRIMARY KEY ("rollout_seq", "index");
CREATE INDEX "rollout_search_words_idx" ON "rollout_search" USING gin ("words");
CREATE INDEX "rollout_search_block_idx" ON "rollout_search"("block");

-- How full the newest block of a run is, in units of at most 256 words of one message; a block has 256 units.
CREATE TABLE "rollout_search_runs" (
  "run_seq" INTEGER PRIMARY KEY,
  "units" BIGINT NOT NULL
);
INSERT INTO "rollout_search_runs" SELECT "block" >> 32, (max("block" & 4294967295) + 1) * 256 FROM "rollout_search" GROUP BY 1;

-- Words of blocks. A block that is still filled has a row per batch of messages. The list of new entries that PostgreSQL reads at every search is off.
CREATE TABLE "rollout_search_blocks" (
  "id" BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  "block" BIGINT NOT NULL,
  "words" TEXT[] NOT NULL
);
ANALYZE "rollout_search";
INSERT INTO "rollout_search_blocks" ("block", "words")
  SELECT b."block", w."words" FROM (SELECT DISTINCT "block" FROM "rollout_search") b CROSS JOIN LATERAL (
    SELECT array_agg(DISTINCT one."word") AS "words" FROM "rollout_search" s, unnest(tsvector_to_array(s."words")) one("word") WHERE s."block" = b."block") w;
CREATE INDEX "rollout_search_blocks_block_idx" ON "rollout_search_blocks"("block");
CREATE INDEX "rollout_search_blocks_words_idx" ON "rollout_search_blocks" USING gin ("words") WITH (fastupdate = off);

-- Blocks whose words are to be collected again from their messages.
CREATE TABLE "rollout_search_marks" (
  "block" BIGINT PRIMARY KEY
);
