-- A share link shows a rollout, a run, the rollouts of a run that match a query, or a comparison. The lists are what it covers; nothing else may be read.
ALTER TABLE "share_links" ADD COLUMN "kind" TEXT NOT NULL DEFAULT 'rollout';
ALTER TABLE "share_links" ADD COLUMN "rollout_ids" UUID[] NOT NULL DEFAULT '{}';
ALTER TABLE "share_links" ADD COLUMN "run_ids" UUID[] NOT NULL DEFAULT '{}';
ALTER TABLE "share_links" ADD COLUMN "query" TEXT;
ALTER TABLE "share_links" ADD COLUMN "with_rollouts" BOOLEAN NOT NULL DEFAULT false;
UPDATE "share_links" SET "rollout_ids" = ARRAY["rollout_id"];
ALTER TABLE "share_links" DROP COLUMN "rollout_id";
ALTER TABLE "share_links" ALTER COLUMN "kind" DROP DEFAULT;
ALTER TABLE "share_links" ADD CONSTRAINT "share_links_kind_check" CHECK (
  CASE "kind"
    WHEN 'rollout' THEN cardinality("rollout_ids") = 1 AND "run_ids" = '{}' AND "query" IS NULL
    WHEN 'rollouts' THEN cardinality("rollout_ids") = 2 AND "run_ids" = '{}' AND "query" IS NULL
    WHEN 'run' THEN cardinality("run_ids") = 1 AND "rollout_ids" = '{}' AND "query" IS NULL
    WHEN 'runs' THEN cardinality("run_ids") BETWEEN 2 AND 4 AND "rollout_ids" = '{}' AND "query" IS NULL
    WHEN 'query' THEN cardinality("run_ids") = 1 AND "rollout_ids" = '{}' AND "query" IS NOT NULL
    ELSE false
  END
);

-- Whether a browser may switch to the other organisations of its user: only if the user themself signed it in. A link from an owner of one
-- organisation must not open the others.
ALTER TABLE "browser_sessions" ADD COLUMN "can_switch" BOOLEAN NOT NULL DEFAULT false;
ALTER TABLE "sign_in_tokens" ADD COLUMN "can_switch" BOOLEAN NOT NULL DEFAULT false;
