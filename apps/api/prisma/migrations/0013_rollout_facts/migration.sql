-- What a step's figures are made of, packed, so that making a step again reads two values a rollout instead of fifteen (ADR 23). Layout: derive/step-columns.ts.
-- PostgreSQL writes the table and its indexes anew, with the table locked: about a minute for ten million rollouts, and room for a second copy of it meanwhile.
ALTER TABLE "rollouts" ADD COLUMN "facts" BYTEA NOT NULL GENERATED ALWAYS AS (
  int4send(("provenance" & 262143) | ((COALESCE("stop", 15)::int & 15) << 18) | ((COALESCE("failure", 3)::int & 3) << 22) | ("finished"::int << 24)
    | (("flags" & 1) << 25) | (("group_key" IS NOT NULL)::int << 26))
  || int2send(COALESCE("group_size", (-1)::smallint)) || int8send(COALESCE("group_key", 0)) || float8send(COALESCE("reward", 'NaN')) || int4send(COALESCE("task_id", -1))
  || int4send("messages") || int4send("calls") || int4send("call_errors") || int4send("gaps")
  || int4send(COALESCE("turns", -1)) || int4send(COALESCE("tokens_out", -1)) || int4send(COALESCE("tokens_tool", -1))) STORED;
