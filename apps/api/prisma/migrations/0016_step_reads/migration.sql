-- A step is read by one concatenation without groups (ADR 23): number and environment of a rollout are packed with what its figures are made of, and what it used of a
-- tool is packed likewise. PostgreSQL walks over every column before the one that it reads, so that this one stands before all that may be null: at the end of forty it cost
-- a third of the reading. Layouts: derive/step-columns.ts, derive/tool-uses.sql.ts.
-- Both tables and their indexes are written anew, locked: as 0013, about a minute for ten million rollouts, and one more for their tools.
ALTER TABLE "rollouts" RENAME TO "old_rollouts";
CREATE TABLE "rollouts" (
  "seq" BIGINT NOT NULL,
  "id" UUID NOT NULL,
  "received_at" TIMESTAMPTZ(3) NOT NULL,
  "last_at" TIMESTAMPTZ(3) NOT NULL,
  "bytes" BIGINT NOT NULL,
  "run_seq" INTEGER NOT NULL,
  "env_id" INTEGER NOT NULL,
  "phase" SMALLINT NOT NULL,
  "facts" BYTEA NOT NULL GENERATED ALWAYS AS (
    int8send("seq") || int4send("env_id")
    || int4send(("provenance" & 262143) | ((COALESCE("stop", 15)::int & 15) << 18) | ((COALESCE("failure", 3)::int & 3) << 22) | ("finished"::int << 24)
      | (("flags" & 1) << 25) | (("group_key" IS NOT NULL)::int << 26))
    || int2send(COALESCE("group_size", (-1)::smallint)) || int8send(COALESCE("group_key", 0)) || float8send(COALESCE("reward", 'NaN')) || int4send(COALESCE("task_id", -1))
    || int4send("messages") || int4send("calls") || int4send("call_errors") || int4send("gaps")
    || int4send(COALESCE("turns", -1)) || int4send(COALESCE("tokens_out", -1)) || int4send(COALESCE("tokens_tool", -1))) STORED,
  "group_key" BIGINT,
  "reward" DOUBLE PRECISION,
  "reward_positive" DOUBLE PRECISION,
  "max_reward" DOUBLE PRECISION,
  "last_reward" DOUBLE PRECISION,
  "reward_reported" DOUBLE PRECISION,
  "task_id" INTEGER,
  "task_index" INTEGER,
  "step" INTEGER,
  "policy_step" INTEGER,
  "sample_idx" INTEGER,
  "turns" INTEGER,
  "tool_turns" INTEGER,
  "messages" INTEGER NOT NULL,
  "calls" INTEGER NOT NULL,
  "call_errors" INTEGER NOT NULL,
  "tokens_out" INTEGER,
  "tokens_tool" INTEGER,
  "gaps" INTEGER NOT NULL,
  "flags" INTEGER NOT NULL,
  "provenance" INTEGER NOT NULL,
  "revision" INTEGER NOT NULL,
  "latency_ms" REAL,
  "reward_steps" SMALLINT NOT NULL,
  "group_size" SMALLINT,
  "stop" SMALLINT,
  "failure" SMALLINT,
  "verdict" SMALLINT,
  "normaliser" SMALLINT NOT NULL,
  "finished" BOOLEAN NOT NULL,
  "split" TEXT
) WITH (fillfactor = 90);
INSERT INTO "rollouts" (
  "seq", "id", "received_at", "last_at", "bytes", "run_seq", "env_id", "phase", "group_key", "reward", "reward_positive", "max_reward",
  "last_reward", "reward_reported", "task_id", "task_index", "step", "policy_step", "sample_idx", "turns", "tool_turns", "messages", "calls",
  "call_errors", "tokens_out", "tokens_tool", "gaps", "flags", "provenance", "revision", "latency_ms", "reward_steps", "group_size", "stop",
  "failure", "verdict", "normaliser", "finished", "split"
) SELECT
  "seq", "id", "received_at", "last_at", "bytes", "run_seq", "env_id", "phase", "group_key", "reward", "reward_positive", "max_reward",
  "last_reward", "reward_reported", "task_id", "task_index", "step", "policy_step", "sample_idx", "turns", "tool_turns", "messages", "calls",
  "call_errors", "tokens_out", "tokens_tool", "gaps", "flags", "provenance", "revision", "latency_ms", "reward_steps", "group_size", "stop",
  "failure", "verdict", "normaliser", "finished", "split"
FROM "old_rollouts" ORDER BY "seq";
DROP TABLE "old_rollouts";
ALTER TABLE "rollouts" ADD CONSTRAINT "rollouts_pkey" PRIMARY KEY ("seq");
CREATE INDEX "rollouts_run_seq_idx" ON "rollouts"("run_seq", "seq");
CREATE INDEX "rollouts_run_step_idx" ON "rollouts"("run_seq", (COALESCE("step", -1)), "seq");
CREATE INDEX "rollouts_run_reward_idx" ON "rollouts"("run_seq", (COALESCE("reward", '-Infinity')), "seq");
CREATE INDEX "rollouts_run_reward_ascending_idx" ON "rollouts"("run_seq", (COALESCE("reward", 'Infinity')), "seq");
CREATE INDEX "rollouts_run_turns_idx" ON "rollouts"("run_seq", (COALESCE("turns", -1)), "seq");
CREATE INDEX "rollouts_run_task_idx" ON "rollouts"("run_seq", (COALESCE("task_index", -1)), "seq");
CREATE INDEX "rollouts_run_messages_idx" ON "rollouts"("run_seq", "messages", "seq");
CREATE INDEX "rollouts_run_group_idx" ON "rollouts"("run_seq", "group_key", "sample_idx");
CREATE INDEX "rollouts_env_idx" ON "rollouts"("env_id", "task_index");
CREATE INDEX "rollouts_task_idx" ON "rollouts"("task_id");
ANALYZE "rollouts";
ALTER TABLE "rollout_tools" ADD COLUMN "facts" BYTEA NOT NULL GENERATED ALWAYS AS (
  int8send("rollout_seq") || int4send("calls") || int4send("errors") || int8send("result_bytes")) STORED;
