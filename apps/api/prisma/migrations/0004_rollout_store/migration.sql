-- The rollout store (docs/adr/0013): raw heads and messages that ingest writes, narrow rows and rollups that are derived from them.
ALTER TABLE "rollouts" RENAME TO "old_rollouts";
ALTER TABLE "old_rollouts" RENAME CONSTRAINT "rollouts_pkey" TO "old_rollouts_pkey";
ALTER TABLE "rollout_meta" RENAME TO "old_rollout_meta";
ALTER TABLE "old_rollout_meta" RENAME CONSTRAINT "rollout_meta_pkey" TO "old_rollout_meta_pkey";
ALTER TABLE "rollout_messages" RENAME TO "old_rollout_messages";
ALTER TABLE "old_rollout_messages" RENAME CONSTRAINT "rollout_messages_pkey" TO "old_rollout_messages_pkey";

ALTER TABLE "organisations" ADD COLUMN "retention_days" INTEGER;
ALTER TABLE "runs"
  ADD COLUMN "seq" INTEGER GENERATED ALWAYS AS IDENTITY,
  ADD COLUMN "settings" JSONB NOT NULL DEFAULT '{}',
  ADD COLUMN "retention_days" INTEGER,
  ADD COLUMN "tags" TEXT[] NOT NULL DEFAULT '{}',
  ADD COLUMN "version" BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN "inference_due" BOOLEAN NOT NULL DEFAULT false,
  ADD COLUMN "inference" JSONB,
  ADD COLUMN "deleted_at" TIMESTAMPTZ(3);
CREATE UNIQUE INDEX "runs_seq_key" ON "runs"("seq");

-- Raw: what was received. Counters move only by rows that were really inserted.
CREATE TABLE "rollout_heads" (
  "seq" BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  "org_id" UUID NOT NULL,
  "id" UUID NOT NULL,
  "day" DATE NOT NULL,
  "run_seq" INTEGER,
  "messages" INTEGER NOT NULL DEFAULT 0,
  "calls" INTEGER NOT NULL DEFAULT 0,
  "max_index" INTEGER NOT NULL DEFAULT -1,
  "bytes" BIGINT NOT NULL DEFAULT 0,
  "output_chars" BIGINT NOT NULL DEFAULT 0,
  "flags" INTEGER NOT NULL DEFAULT 0,
  "finished" BOOLEAN NOT NULL DEFAULT false,
  "dirty" BOOLEAN NOT NULL DEFAULT true,
  "unsearched" BOOLEAN NOT NULL DEFAULT true,
  "unverified" BOOLEAN NOT NULL DEFAULT true,
  "verify_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  "failure_class" TEXT,
  "revision" INTEGER NOT NULL DEFAULT 1,
  "received_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  "last_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  "sealed_at" TIMESTAMPTZ(3)
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX "rollout_heads_org_id_id_key" ON "rollout_heads"("org_id", "id");
CREATE INDEX "rollout_heads_dirty_idx" ON "rollout_heads"("run_seq", "seq") WHERE "dirty" AND "run_seq" IS NOT NULL;
CREATE INDEX "rollout_heads_unsearched_idx" ON "rollout_heads"("seq") WHERE "unsearched" AND "run_seq" IS NOT NULL;
CREATE INDEX "rollout_heads_unverified_idx" ON "rollout_heads"("verify_at") WHERE "unverified" AND "run_seq" IS NOT NULL;
CREATE INDEX "rollout_heads_unsealed_idx" ON "rollout_heads"("seq") WHERE "sealed_at" IS NULL;
CREATE INDEX "rollout_heads_run_seq_idx" ON "rollout_heads"("run_seq", "seq");

CREATE TABLE "rollout_meta" (
  "rollout_seq" BIGINT PRIMARY KEY,
  "start" JSONB,
  "rollout_info" JSONB,
  "rollout_info_at" JSONB,
  "rollout_name" TEXT,
  "source" TEXT,
  "model" TEXT,
  "stop_raw" TEXT,
  "author" TEXT,
  "sid" TEXT,
  "rules" JSONB
);
CREATE INDEX "rollout_meta_sid_idx" ON "rollout_meta"("sid") WHERE "sid" IS NOT NULL;

-- By the day on which its rollout was first heard of: all messages of a rollout are in one partition.
CREATE TABLE "rollout_messages" (
  "day" DATE NOT NULL,
  "rollout_seq" BIGINT NOT NULL,
  "event_id" UUID NOT NULL,
  "index" INTEGER NOT NULL,
  "bytes" INTEGER NOT NULL,
  "flags" INTEGER NOT NULL DEFAULT 0,
  "is_finished" BOOLEAN NOT NULL,
  "type" TEXT NOT NULL,
  "sent_at" BIGINT NOT NULL,
  "reward" DOUBLE PRECISION,
  "name" TEXT,
  "call_id" TEXT,
  "content" TEXT,
  "content_reference" TEXT,
  "summary" TEXT,
  "blob_key" TEXT,
  "metadata" JSONB,
  "extra" JSONB,
  PRIMARY KEY ("day", "rollout_seq", "event_id")
) PARTITION BY RANGE ("day");
CREATE TABLE "rollout_messages_default" PARTITION OF "rollout_messages" DEFAULT;

CREATE TABLE "rollout_transcripts" (
  "rollout_seq" BIGINT PRIMARY KEY,
  "blob_key" TEXT NOT NULL,
  "chunks" JSONB NOT NULL,
  "messages" INTEGER NOT NULL,
  "bytes" BIGINT NOT NULL,
  "sealed_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);

-- Derived: everything below can be made again from the tables above.
CREATE TABLE "rollout_environments" (
  "id" INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  "org_id" UUID NOT NULL,
  "name_hash" BYTEA NOT NULL,
  "environment" TEXT,
  "variant" TEXT,
  "environment_id" UUID
);
CREATE UNIQUE INDEX "rollout_environments_org_id_name_hash_key" ON "rollout_environments"("org_id", "name_hash");
CREATE INDEX "rollout_environments_environment_id_idx" ON "rollout_environments"("environment_id");

CREATE TABLE "rollout_tasks" (
  "id" INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  "org_id" UUID NOT NULL,
  "key_hash" BYTEA NOT NULL,
  "key" TEXT NOT NULL,
  "env_id" INTEGER NOT NULL,
  "task_index" INTEGER,
  "split" TEXT
);
CREATE UNIQUE INDEX "rollout_tasks_org_id_key_hash_key" ON "rollout_tasks"("org_id", "key_hash");

CREATE TABLE "rollouts" (
  "seq" BIGINT PRIMARY KEY,
  "id" UUID NOT NULL,
  "group_key" BIGINT,
  "reward" DOUBLE PRECISION,
  "reward_positive" DOUBLE PRECISION,
  "max_reward" DOUBLE PRECISION,
  "last_reward" DOUBLE PRECISION,
  "reward_reported" DOUBLE PRECISION,
  "received_at" TIMESTAMPTZ(3) NOT NULL,
  "last_at" TIMESTAMPTZ(3) NOT NULL,
  "bytes" BIGINT NOT NULL,
  "run_seq" INTEGER NOT NULL,
  "env_id" INTEGER NOT NULL,
  "task_id" INTEGER,
  "task_index" INTEGER,
  "step" INTEGER,
  "policy_step" INTEGER,
  "sample_idx" INTEGER,
  "turns" INTEGER,
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
  "phase" SMALLINT NOT NULL,
  "stop" SMALLINT,
  "failure" SMALLINT,
  "verdict" SMALLINT,
  "normaliser" SMALLINT NOT NULL,
  "finished" BOOLEAN NOT NULL,
  "split" TEXT
) WITH (fillfactor = 90);
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

CREATE TABLE "rollout_tools" (
  "rollout_seq" BIGINT NOT NULL,
  "run_seq" INTEGER NOT NULL,
  "calls" INTEGER NOT NULL,
  "errors" INTEGER NOT NULL,
  "result_bytes" BIGINT NOT NULL,
  "tool" TEXT NOT NULL,
  PRIMARY KEY ("rollout_seq", "tool")
);
CREATE INDEX "rollout_tools_run_idx" ON "rollout_tools"("run_seq", "tool", "rollout_seq");

-- What our own ledger knows of a rollout's calls: true duration and failure class.
CREATE TABLE "rollout_calls" (
  "rollout_seq" BIGINT NOT NULL,
  "index" INTEGER NOT NULL,
  "ledger_seq" BIGINT NOT NULL,
  "duration_ms" REAL,
  "sid" TEXT NOT NULL,
  "tool" TEXT NOT NULL,
  "failure_class" TEXT,
  PRIMARY KEY ("rollout_seq", "index")
);
CREATE INDEX "rollout_calls_sid_idx" ON "rollout_calls"("sid");
-- Sessions that a rollout may have happened in.
CREATE INDEX "sessions_org_id_environment_created_at_idx" ON "sessions"("org_id", "environment", "created_at");

-- Words of each message; run, organisation and type of message are words too, so that one index answers all of it (ADR 0014).
CREATE TABLE "rollout_search" (
  "rollout_seq" BIGINT NOT NULL,
  "index" INTEGER NOT NULL,
  "words" TSVECTOR NOT NULL,
  PRIMARY KEY ("rollout_seq", "index")
);
CREATE INDEX "rollout_search_words_idx" ON "rollout_search" USING gin ("words");

CREATE TABLE "rollout_groups" (
  "run_seq" INTEGER NOT NULL,
  "group_key" BIGINT NOT NULL,
  "phase" SMALLINT NOT NULL,
  "step" INTEGER NOT NULL,
  "env_id" INTEGER NOT NULL,
  "task_id" INTEGER,
  "n" INTEGER NOT NULL,
  "n_expected" INTEGER,
  "scored" INTEGER NOT NULL,
  "errors" INTEGER NOT NULL,
  "successes" INTEGER NOT NULL,
  "sum" DOUBLE PRECISION NOT NULL,
  "sum_squares" DOUBLE PRECISION NOT NULL,
  "min" DOUBLE PRECISION,
  "max" DOUBLE PRECISION,
  PRIMARY KEY ("run_seq", "group_key", "phase", "step")
);
CREATE INDEX "rollout_groups_step_idx" ON "rollout_groups"("run_seq", "step", "group_key");
CREATE INDEX "rollout_groups_task_idx" ON "rollout_groups"("run_seq", "task_id", "step");

-- env_id 0 = all environments together; step -1 = not known; phase 0 train, 1 eval, 2 not known.
CREATE TABLE "step_rollups" (
  "run_seq" INTEGER NOT NULL,
  "env_id" INTEGER NOT NULL,
  "phase" SMALLINT NOT NULL,
  "step" INTEGER NOT NULL,
  "rollouts" INTEGER NOT NULL,
  "scored" INTEGER NOT NULL,
  "errors" INTEGER NOT NULL,
  "finished" INTEGER NOT NULL,
  "messages" BIGINT NOT NULL,
  "reward_sum" DOUBLE PRECISION NOT NULL,
  "provenance" INTEGER NOT NULL,
  "version" BIGINT NOT NULL,
  "figures" JSONB NOT NULL,
  PRIMARY KEY ("run_seq", "env_id", "phase", "step")
);
CREATE TABLE "tool_rollups" (
  "run_seq" INTEGER NOT NULL,
  "phase" SMALLINT NOT NULL,
  "step" INTEGER NOT NULL,
  "env_id" INTEGER NOT NULL,
  "tool" TEXT NOT NULL,
  "figures" JSONB NOT NULL,
  PRIMARY KEY ("run_seq", "phase", "step", "env_id", "tool")
);
CREATE TABLE "dirty_steps" (
  "run_seq" INTEGER NOT NULL,
  "phase" SMALLINT NOT NULL,
  "step" INTEGER NOT NULL,
  PRIMARY KEY ("run_seq", "phase", "step")
);
-- Whether all rewards of an environment in a run lie in [0, 1]: what success means follows from that (dashboard.md 14.3).
CREATE TABLE "run_environments" (
  "run_seq" INTEGER NOT NULL,
  "env_id" INTEGER NOT NULL,
  "unit_rewards" BOOLEAN NOT NULL,
  PRIMARY KEY ("run_seq", "env_id")
);
CREATE TABLE "ingest_counters" (
  "run_seq" INTEGER PRIMARY KEY,
  "accepted" BIGINT NOT NULL DEFAULT 0,
  "duplicates" BIGINT NOT NULL DEFAULT 0,
  "conflicts" BIGINT NOT NULL DEFAULT 0,
  "late" BIGINT NOT NULL DEFAULT 0,
  "nonfinite" BIGINT NOT NULL DEFAULT 0
);

-- Of people.
CREATE TABLE "annotations" (
  "id" UUID NOT NULL DEFAULT gen_random_uuid() PRIMARY KEY,
  "org_id" UUID NOT NULL,
  "rollout_seq" BIGINT NOT NULL,
  "run_seq" INTEGER NOT NULL,
  "from_index" INTEGER,
  "to_index" INTEGER,
  "verdict" TEXT,
  "score" DOUBLE PRECISION,
  "tag" TEXT,
  "note" TEXT,
  "author" TEXT NOT NULL,
  "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE INDEX "annotations_rollout_seq_idx" ON "annotations"("rollout_seq");
CREATE INDEX "annotations_run_seq_idx" ON "annotations"("run_seq", "tag");

CREATE TABLE "saved_views" (
  "id" UUID NOT NULL DEFAULT gen_random_uuid() PRIMARY KEY,
  "org_id" UUID NOT NULL,
  "run_seq" INTEGER,
  "name" TEXT NOT NULL,
  "query" TEXT NOT NULL,
  "lens" TEXT,
  "state" JSONB NOT NULL DEFAULT '{}',
  "author" TEXT NOT NULL,
  "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE INDEX "saved_views_org_id_run_seq_idx" ON "saved_views"("org_id", "run_seq");

CREATE TABLE "rollout_exports" (
  "id" UUID NOT NULL DEFAULT gen_random_uuid() PRIMARY KEY,
  "org_id" UUID NOT NULL,
  "run_seq" INTEGER,
  "state" TEXT NOT NULL,
  "request" JSONB NOT NULL,
  "as_of_seq" BIGINT,
  "cursor" JSONB,
  "files" JSONB NOT NULL DEFAULT '[]',
  "total" BIGINT,
  "written" BIGINT NOT NULL DEFAULT 0,
  "bytes" BIGINT NOT NULL DEFAULT 0,
  "error" TEXT,
  "author" TEXT NOT NULL,
  "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  "finished_at" TIMESTAMPTZ(3)
);
CREATE INDEX "rollout_exports_org_id_idx" ON "rollout_exports"("org_id", "created_at" DESC);

-- What was stored before: heads, meta and messages move; the rest is derived again from them.
INSERT INTO "rollout_heads" ("org_id", "id", "day", "run_seq", "messages", "calls", "max_index", "bytes", "finished", "failure_class", "received_at", "last_at")
SELECT o.org_id, o.id, (o.created_at AT TIME ZONE 'UTC')::date, runs.seq, o.num_messages, o.num_tool_calls, o.max_index, o.bytes, o.finished, o.failure_class, o.created_at, o.updated_at
FROM old_rollouts o LEFT JOIN runs ON runs.id = o.run_id ORDER BY o.created_at, o.id;
INSERT INTO "rollout_meta" ("rollout_seq", "start", "rollout_info", "rollout_info_at")
SELECT h.seq, m.start, m.rollout_info, m.rollout_info_at FROM old_rollout_meta m JOIN rollout_heads h ON h.org_id = m.org_id AND h.id = m.rollout_id;
INSERT INTO "rollout_messages" ("day", "rollout_seq", "event_id", "index", "bytes", "flags", "is_finished", "type", "sent_at", "reward", "name", "call_id",
  "content", "content_reference", "summary", "metadata", "extra")
SELECT h.day, h.seq, m.event_id, m.index, octet_length(COALESCE(m.content, '')) + octet_length(COALESCE(m.summary, '')), 0, m.is_finished, m.type, m.sent_at,
  m.reward, m.name, m.call_id, m.content, m.content_reference, m.summary, NULLIF(m.metadata, '{}'), m.extra
FROM old_rollout_messages m JOIN rollout_heads h ON h.org_id = m.org_id AND h.id = m.rollout_id;
DROP TABLE "old_rollouts", "old_rollout_meta", "old_rollout_messages";
