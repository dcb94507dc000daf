-- A link to a comparison of rollouts covers two to four, as the page does.
ALTER TABLE "share_links" DROP CONSTRAINT "share_links_kind_check";
ALTER TABLE "share_links" ADD CONSTRAINT "share_links_kind_check" CHECK (
  CASE "kind"
    WHEN 'rollout' THEN cardinality("rollout_ids") = 1 AND "run_ids" = '{}' AND "query" IS NULL
    WHEN 'rollouts' THEN cardinality("rollout_ids") BETWEEN 2 AND 4 AND "run_ids" = '{}' AND "query" IS NULL
    WHEN 'run' THEN cardinality("run_ids") = 1 AND "rollout_ids" = '{}' AND "query" IS NULL
    WHEN 'runs' THEN cardinality("run_ids") BETWEEN 2 AND 4 AND "rollout_ids" = '{}' AND "query" IS NULL
    WHEN 'query' THEN cardinality("run_ids") = 1 AND "rollout_ids" = '{}' AND "query" IS NOT NULL
    ELSE false
  END
);
