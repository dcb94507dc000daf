-- Hosting (ADR 42): deploys become versions, versions run as instances.

-- Scale, resources and network of its instances; null: it was never deployed.
ALTER TABLE "environments" ADD COLUMN "hosting" JSONB;

ALTER TABLE "environment_versions"
  -- verifying (its deploy probes it, and nothing resolves to it) or ready
  ADD COLUMN "state" TEXT NOT NULL DEFAULT 'ready',
  -- The columns below are set for versions of the kind `hosted`.
  ADD COLUMN "protocol" TEXT,
  ADD COLUMN "deploy_id" UUID,
  ADD COLUMN "artifact" JSONB,
  ADD COLUMN "provider" TEXT,
  ADD COLUMN "source_digest" TEXT,
  ADD COLUMN "artifact_digest" TEXT,
  ADD COLUMN "commit" TEXT,
  -- Digests of its tool specifications and of its task set, as the probe read them.
  ADD COLUMN "tools_digest" TEXT,
  ADD COLUMN "tasks_digest" TEXT,
  -- What the probe saw: prompt, tools and rewards of one episode of a fixed task.
  ADD COLUMN "probe" JSONB;

CREATE TABLE "environment_deploys" (
  "id" UUID NOT NULL DEFAULT gen_random_uuid() PRIMARY KEY,
  "environment_id" UUID NOT NULL REFERENCES "environments" ("id") ON DELETE CASCADE,
  "org_id" UUID NOT NULL,
  -- queued, building, verifying, ready, failed or cancelled
  "state" TEXT NOT NULL,
  -- {"kind":"folder"} | {"kind":"git",url,ref,subdirectory} | {"kind":"image",image} | {"kind":"url",urls}
  "source" JSONB NOT NULL,
  -- {"settings","dockerfile"}: settings of the environment from this version on, and options of the build.
  "options" JSONB NOT NULL DEFAULT '{}',
  -- Object of the uploaded tarball; deleted after the build.
  "source_key" TEXT,
  "source_digest" TEXT,
  "commit" TEXT,
  -- The channel that is promoted when the version is ready; null: none.
  "channel" TEXT,
  "version_id" UUID REFERENCES "environment_versions" ("id") ON DELETE SET NULL,
  -- The source was deployed before: the version is an earlier one.
  "reused" BOOLEAN NOT NULL DEFAULT false,
  -- How often a process began it; the process may have died.
  "attempts" INTEGER NOT NULL DEFAULT 0,
  -- Code, text and line of the log of a failure.
  "error" JSONB,
  "author" TEXT NOT NULL,
  "cancel_requested_at" TIMESTAMPTZ(3),
  "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  "started_at" TIMESTAMPTZ(3),
  "ended_at" TIMESTAMPTZ(3)
);
CREATE INDEX "environment_deploys_environment_id_created_at_idx" ON "environment_deploys" ("environment_id", "created_at" DESC);
CREATE INDEX "environment_deploys_org_id_idx" ON "environment_deploys" ("org_id");
CREATE INDEX "environment_deploys_open_idx" ON "environment_deploys" ("org_id", "environment_id") WHERE "ended_at" IS NULL;

-- The git repository from which pushes are deployed.
CREATE TABLE "environment_git_links" (
  "environment_id" UUID NOT NULL PRIMARY KEY REFERENCES "environments" ("id") ON DELETE CASCADE,
  "org_id" UUID NOT NULL,
  "url" TEXT NOT NULL,
  -- The branch that is deployed; null: the default branch of the repository.
  "ref" TEXT,
  "subdirectory" TEXT,
  -- The channel that its deploys promote; null: none.
  "channel" TEXT,
  -- Secret of the webhook, sealed with the service's key; null: webhooks are refused.
  "sealed" BYTEA,
  -- SHA-256 of the last accepted webhooks: a repeated one is a replay.
  "deliveries" BYTEA[] NOT NULL DEFAULT '{}',
  "author" TEXT NOT NULL,
  "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  "pushed_at" TIMESTAMPTZ(3)
);
CREATE INDEX "environment_git_links_org_id_idx" ON "environment_git_links" ("org_id");

CREATE TABLE "environment_channels" (
  "environment_id" UUID NOT NULL REFERENCES "environments" ("id") ON DELETE CASCADE,
  "name" TEXT NOT NULL,
  "version_id" UUID NOT NULL REFERENCES "environment_versions" ("id") ON DELETE CASCADE,
  -- The version before, to which a rollback returns.
  "previous_version_id" UUID REFERENCES "environment_versions" ("id") ON DELETE SET NULL,
  "canary_version_id" UUID REFERENCES "environment_versions" ("id") ON DELETE SET NULL,
  "canary_percent" INTEGER NOT NULL DEFAULT 0,
  -- Why it last changed: promote, rollback or automatic, and by whom.
  "reason" TEXT NOT NULL,
  "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY ("environment_id", "name")
);
CREATE INDEX "environment_channels_version_id_idx" ON "environment_channels" ("version_id");

CREATE TABLE "environment_instances" (
  "id" UUID NOT NULL DEFAULT gen_random_uuid() PRIMARY KEY,
  "environment_id" UUID NOT NULL,
  "version_id" UUID NOT NULL,
  "org_id" UUID NOT NULL,
  "provider" TEXT NOT NULL,
  -- starting, ready, draining, failed or stopped
  "state" TEXT NOT NULL,
  "endpoint" TEXT,
  -- Last reason why it does not serve.
  "detail" TEXT,
  "restarts" INTEGER NOT NULL DEFAULT 0,
  -- Last usage that was seen: {"cpus","memory_mb","pids"}.
  "stats" JSONB,
  "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  "ready_at" TIMESTAMPTZ(3),
  "draining_at" TIMESTAMPTZ(3),
  "stopped_at" TIMESTAMPTZ(3)
);
CREATE INDEX "environment_instances_version_id_idx" ON "environment_instances" ("version_id") WHERE "stopped_at" IS NULL;
CREATE INDEX "environment_instances_failed_idx" ON "environment_instances" ("stopped_at") WHERE "state" = 'failed';
CREATE INDEX "environment_instances_environment_id_created_at_idx" ON "environment_instances" ("environment_id", "created_at" DESC);

-- Lines of builds and instances. Old ones move to objects.
CREATE TABLE "hosting_logs" (
  "seq" BIGSERIAL NOT NULL PRIMARY KEY,
  -- Id of the deploy or the instance.
  "source_id" UUID NOT NULL,
  "environment_id" UUID NOT NULL REFERENCES "environments" ("id") ON DELETE CASCADE,
  -- Of an instance; null: of a build.
  "version_id" UUID,
  "org_id" UUID NOT NULL,
  "at" TIMESTAMPTZ(3) NOT NULL,
  "stream" TEXT NOT NULL,
  -- debug, info, warning or error
  "severity" TEXT NOT NULL,
  "text" TEXT NOT NULL
);
CREATE INDEX "hosting_logs_source_id_seq_idx" ON "hosting_logs" ("source_id", "seq");
CREATE INDEX "hosting_logs_environment_id_seq_idx" ON "hosting_logs" ("environment_id", "seq") WHERE "version_id" IS NOT NULL;

-- Values are sealed with the service's key.
CREATE TABLE "environment_secrets" (
  "environment_id" UUID NOT NULL REFERENCES "environments" ("id") ON DELETE CASCADE,
  "name" TEXT NOT NULL,
  "org_id" UUID NOT NULL,
  "sealed" BYTEA NOT NULL,
  "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY ("environment_id", "name")
);

-- The instance that serves the session; null where the environment is not hosted here.
ALTER TABLE "sessions" ADD COLUMN "instance_id" UUID;
CREATE INDEX "sessions_instance_id_idx" ON "sessions" ("instance_id") WHERE "instance_id" IS NOT NULL AND "ended_at" IS NULL;
-- For the comparison of a canary with the version beside it. Rows of other environments are not in it.
CREATE INDEX "sessions_hosted_ended_idx" ON "sessions" ("version_id", "ended_at") WHERE "instance_id" IS NOT NULL AND "ended_at" IS NOT NULL;

-- The engines of this installation, as the process that runs instances last saw them.
CREATE TABLE "hosting_engines" (
  "name" TEXT NOT NULL PRIMARY KEY,
  -- Null while it does not answer.
  "capabilities" JSONB,
  -- Why it does not answer.
  "detail" TEXT,
  "seen_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);

-- Names this installation on an engine that others use too. The first process that needs it writes the one row.
CREATE TABLE "hosting_installation" (
  "only" BOOLEAN NOT NULL PRIMARY KEY DEFAULT true CHECK ("only"),
  "id" UUID NOT NULL DEFAULT gen_random_uuid()
);
