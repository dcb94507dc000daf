-- Tasks that are uploaded for an environment, whatever its server knows of tasks.
CREATE TABLE "task_sets" (
    "id" UUID NOT NULL DEFAULT gen_random_uuid(),
    "environment_id" UUID NOT NULL,
    "content_hash" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "published_at" TIMESTAMPTZ(3),
    CONSTRAINT "task_sets_pkey" PRIMARY KEY ("id")
);
CREATE UNIQUE INDEX "task_sets_environment_id_content_hash_key" ON "task_sets"("environment_id", "content_hash");
ALTER TABLE "task_sets" ADD CONSTRAINT "task_sets_environment_id_fkey"
    FOREIGN KEY ("environment_id") REFERENCES "environments"("id") ON DELETE CASCADE ON UPDATE CASCADE;

CREATE TABLE "task_splits" (
    "id" SERIAL NOT NULL,
    "task_set_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "type" TEXT NOT NULL,
    "num_tasks" INTEGER NOT NULL,
    "bytes" BIGINT NOT NULL,
    "content_hash" TEXT NOT NULL,
    CONSTRAINT "task_splits_pkey" PRIMARY KEY ("id")
);
CREATE UNIQUE INDEX "task_splits_task_set_id_name_key" ON "task_splits"("task_set_id", "name");
ALTER TABLE "task_splits" ADD CONSTRAINT "task_splits_task_set_id_fkey"
    FOREIGN KEY ("task_set_id") REFERENCES "task_sets"("id") ON DELETE CASCADE ON UPDATE CASCADE;

CREATE TABLE "task_rows" (
    "split_id" INTEGER NOT NULL,
    "index" INTEGER NOT NULL,
    "task_id" TEXT,
    "spec" TEXT NOT NULL,
    "spec_hash" BYTEA,
    "prompt" TEXT,
    CONSTRAINT "task_rows_pkey" PRIMARY KEY ("split_id", "index")
);
CREATE UNIQUE INDEX "task_rows_split_id_task_id_key" ON "task_rows"("split_id", "task_id") WHERE "task_id" IS NOT NULL;
-- Partial, which Prisma cannot say: most tasks bring no prompt.
CREATE INDEX "task_rows_split_id_spec_hash_idx" ON "task_rows"("split_id", "spec_hash") WHERE "spec_hash" IS NOT NULL;
ALTER TABLE "task_rows" ADD CONSTRAINT "task_rows_split_id_fkey"
    FOREIGN KEY ("split_id") REFERENCES "task_splits"("id") ON DELETE CASCADE ON UPDATE CASCADE;

ALTER TABLE "environment_versions" ADD COLUMN "task_set_id" UUID;
CREATE INDEX "environment_versions_task_set_id_idx" ON "environment_versions"("task_set_id");
ALTER TABLE "environment_versions" ADD CONSTRAINT "environment_versions_task_set_id_fkey"
    FOREIGN KEY ("task_set_id") REFERENCES "task_sets"("id") ON DELETE NO ACTION ON UPDATE CASCADE;
