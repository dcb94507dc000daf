-- CreateSchema
CREATE SCHEMA IF NOT EXISTS "public";

-- CreateTable
CREATE TABLE "organisations" (
    "id" UUID NOT NULL DEFAULT gen_random_uuid(),
    "name" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "organisations_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "users" (
    "id" UUID NOT NULL DEFAULT gen_random_uuid(),
    "name" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "users_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "memberships" (
    "org_id" UUID NOT NULL,
    "user_id" UUID NOT NULL,
    "role" TEXT NOT NULL DEFAULT 'owner',

    CONSTRAINT "memberships_pkey" PRIMARY KEY ("org_id","user_id")
);

-- CreateTable
CREATE TABLE "api_keys" (
    "id" UUID NOT NULL DEFAULT gen_random_uuid(),
    "org_id" UUID NOT NULL,
    "user_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "prefix" TEXT NOT NULL,
    "hash" BYTEA NOT NULL,
    "scopes" TEXT[],
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "last_used_at" TIMESTAMPTZ(3),
    "revoked_at" TIMESTAMPTZ(3),

    CONSTRAINT "api_keys_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "browser_sessions" (
    "hash" BYTEA NOT NULL,
    "org_id" UUID NOT NULL,
    "user_id" UUID NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "browser_sessions_pkey" PRIMARY KEY ("hash")
);

-- CreateTable
CREATE TABLE "sign_in_tokens" (
    "hash" BYTEA NOT NULL,
    "org_id" UUID NOT NULL,
    "user_id" UUID NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "sign_in_tokens_pkey" PRIMARY KEY ("hash")
);

-- CreateTable
CREATE TABLE "environments" (
    "id" UUID NOT NULL DEFAULT gen_random_uuid(),
    "org_id" UUID,
    "owner" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "description" TEXT NOT NULL DEFAULT '',
    "is_private" BOOLEAN NOT NULL DEFAULT false,
    "is_harbor" BOOLEAN NOT NULL DEFAULT false,
    "readme_content" TEXT,
    "arxiv_url" TEXT,
    "external_github_url" TEXT,
    "external_hf_url" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "environments_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "environment_versions" (
    "id" UUID NOT NULL DEFAULT gen_random_uuid(),
    "environment_id" UUID NOT NULL,
    "number" INTEGER NOT NULL,
    "source_kind" TEXT NOT NULL,
    "source_name" TEXT,
    "source_url" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "discovery" JSONB,
    "discovered_at" TIMESTAMPTZ(3),

    CONSTRAINT "environment_versions_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "task_exports" (
    "id" UUID NOT NULL DEFAULT gen_random_uuid(),
    "org_id" UUID NOT NULL,
    "state" TEXT NOT NULL,
    "environments" TEXT[],
    "split" TEXT NOT NULL,
    "format" TEXT NOT NULL,
    "prompt_format" TEXT NOT NULL,
    "total" INTEGER,
    "written" INTEGER NOT NULL DEFAULT 0,
    "failed" INTEGER NOT NULL DEFAULT 0,
    "failures" JSONB NOT NULL DEFAULT '[]',
    "error" TEXT,
    "blob_key" TEXT,
    "size" BIGINT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,
    "finished_at" TIMESTAMPTZ(3),

    CONSTRAINT "task_exports_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "runs" (
    "id" UUID NOT NULL DEFAULT gen_random_uuid(),
    "org_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "name_hash" BYTEA NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "runs_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "rollouts" (
    "org_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "run_id" UUID,
    "rollout_name" TEXT,
    "environment" TEXT,
    "environment_id" UUID,
    "variant" TEXT,
    "split" TEXT,
    "step_start" INTEGER,
    "step_info" INTEGER,
    "step_info_at" BIGINT,
    "task_index_info_at" BIGINT,
    "task_index_start" INTEGER,
    "task_index_info" INTEGER,
    "reward" DOUBLE PRECISION,
    "max_reward" DOUBLE PRECISION,
    "reward_reported" DOUBLE PRECISION,
    "num_messages" INTEGER NOT NULL DEFAULT 0,
    "num_tool_calls" INTEGER NOT NULL DEFAULT 0,
    "max_index" INTEGER NOT NULL DEFAULT -1,
    "turns_reported" INTEGER,
    "turns_counted" INTEGER,
    "finished" BOOLEAN NOT NULL DEFAULT false,
    "stop" TEXT,
    "nonfinite" BOOLEAN NOT NULL DEFAULT false,
    "bytes" BIGINT NOT NULL DEFAULT 0,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "rollouts_pkey" PRIMARY KEY ("org_id","id")
);

-- CreateTable
CREATE TABLE "rollout_meta" (
    "org_id" UUID NOT NULL,
    "rollout_id" UUID NOT NULL,
    "start" JSONB,
    "rollout_info" JSONB,
    "rollout_info_at" JSONB,

    CONSTRAINT "rollout_meta_pkey" PRIMARY KEY ("org_id","rollout_id")
);

-- CreateTable
CREATE TABLE "rollout_messages" (
    "org_id" UUID NOT NULL,
    "event_id" UUID NOT NULL,
    "rollout_id" UUID NOT NULL,
    "index" INTEGER NOT NULL,
    "type" TEXT NOT NULL,
    "name" TEXT,
    "call_id" TEXT,
    "content" TEXT,
    "content_reference" TEXT,
    "summary" TEXT,
    "reward" DOUBLE PRECISION,
    "is_finished" BOOLEAN NOT NULL,
    "metadata" JSONB NOT NULL,
    "extra" JSONB,
    "nonfinite" BOOLEAN NOT NULL DEFAULT false,
    "sent_at" BIGINT NOT NULL,
    "received_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "rollout_messages_pkey" PRIMARY KEY ("org_id","event_id")
);

-- CreateTable
CREATE TABLE "sessions" (
    "sid" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "user_id" TEXT NOT NULL,
    "key_id" TEXT,
    "version_id" TEXT,
    "env" TEXT,
    "task" TEXT,
    "state" TEXT NOT NULL,
    "version" INTEGER NOT NULL,
    "ref" TEXT,
    "failure" TEXT,
    "failure_class" TEXT,
    "idle_timeout_ms" INTEGER NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "last_seen_at" TIMESTAMPTZ(3) NOT NULL,
    "expires_at" TIMESTAMPTZ(3),
    "ended_at" TIMESTAMPTZ(3),
    "unbound_ended_at" TIMESTAMPTZ(3),

    CONSTRAINT "sessions_pkey" PRIMARY KEY ("sid")
);

-- CreateTable
CREATE TABLE "session_calls" (
    "task_id" TEXT NOT NULL,
    "seq" BIGSERIAL NOT NULL,
    "sid" TEXT NOT NULL,
    "kind" TEXT NOT NULL,
    "tool" TEXT NOT NULL,
    "input" TEXT NOT NULL,
    "replica_id" TEXT NOT NULL,
    "upstream_task_id" TEXT,
    "state" TEXT NOT NULL,
    "result" TEXT,
    "ok" BOOLEAN,
    "reason" TEXT,
    "reward" DOUBLE PRECISION,
    "finished" BOOLEAN,
    "failure_class" TEXT,
    "started_at" TIMESTAMPTZ(3) NOT NULL,
    "ended_at" TIMESTAMPTZ(3),

    CONSTRAINT "session_calls_pkey" PRIMARY KEY ("task_id")
);

-- CreateTable
CREATE TABLE "session_replicas" (
    "id" TEXT NOT NULL,
    "seen_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "session_replicas_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE UNIQUE INDEX "organisations_name_key" ON "organisations"("name");

-- CreateIndex
CREATE UNIQUE INDEX "users_name_key" ON "users"("name");

-- CreateIndex
CREATE UNIQUE INDEX "api_keys_hash_key" ON "api_keys"("hash");

-- CreateIndex
CREATE INDEX "environments_name_idx" ON "environments"("name");

-- CreateIndex
CREATE INDEX "environments_org_id_idx" ON "environments"("org_id");

-- CreateIndex
CREATE UNIQUE INDEX "environments_owner_name_key" ON "environments"("owner", "name");

-- CreateIndex
CREATE UNIQUE INDEX "environment_versions_environment_id_number_key" ON "environment_versions"("environment_id", "number");

-- CreateIndex
CREATE INDEX "runs_org_id_updated_at_id_idx" ON "runs"("org_id", "updated_at" DESC, "id");

-- CreateIndex
CREATE UNIQUE INDEX "runs_org_id_name_hash_key" ON "runs"("org_id", "name_hash");

-- CreateIndex
CREATE INDEX "rollouts_run_id_created_at_id_idx" ON "rollouts"("run_id", "created_at" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "rollouts_org_id_environment_id_idx" ON "rollouts"("org_id", "environment_id");

-- CreateIndex
CREATE INDEX "rollout_messages_org_id_rollout_id_index_idx" ON "rollout_messages"("org_id", "rollout_id", "index");

-- CreateIndex
CREATE INDEX "sessions_expires_at_idx" ON "sessions"("expires_at");

-- CreateIndex
CREATE INDEX "sessions_unbound_ended_at_idx" ON "sessions"("unbound_ended_at");

-- CreateIndex
CREATE INDEX "sessions_org_id_created_at_idx" ON "sessions"("org_id", "created_at");

-- CreateIndex
CREATE INDEX "session_calls_sid_seq_idx" ON "session_calls"("sid", "seq");

-- AddForeignKey
ALTER TABLE "memberships" ADD CONSTRAINT "memberships_org_id_fkey" FOREIGN KEY ("org_id") REFERENCES "organisations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "memberships" ADD CONSTRAINT "memberships_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_org_id_fkey" FOREIGN KEY ("org_id") REFERENCES "organisations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "environment_versions" ADD CONSTRAINT "environment_versions_environment_id_fkey" FOREIGN KEY ("environment_id") REFERENCES "environments"("id") ON DELETE CASCADE ON UPDATE CASCADE;
