-- Groups of a step are read to tell which of them changed, and few have: they are packed when they are written, as rollouts are (ADR 23). Layout: derive/stored-groups.sql.ts.
-- The table and its indexes are written anew, locked: about a second for a million groups.
ALTER TABLE "rollout_groups" ADD COLUMN "facts" BYTEA NOT NULL GENERATED ALWAYS AS (
  int8send("group_key") || int4send("env_id") || int4send(COALESCE("task_id", -1)) || int4send("n") || int4send(COALESCE("n_expected", -1)) || int4send("scored")
    || int4send("errors") || int4send("successes") || float8send("sum") || float8send("sum_squares") || float8send(COALESCE("min", 'NaN')) || float8send(COALESCE("max", 'NaN'))) STORED;
-- What is made of a step takes the place of what stood there, over and over: with room beside it a row keeps its page and its entries in the indexes.
ALTER TABLE "rollout_groups" SET (fillfactor = 70);
ALTER TABLE "step_rollups" SET (fillfactor = 50);
ALTER TABLE "tool_rollups" SET (fillfactor = 50);
