-- What the uploaded files of environments take of an organisation's quota. Files from before are counted when they are replaced.
CREATE TABLE "environment_files" (
  "key" TEXT NOT NULL,
  "org_id" UUID NOT NULL,
  "bytes" BIGINT NOT NULL DEFAULT 0,
  "pending" BIGINT NOT NULL DEFAULT 0,
  "pending_at" TIMESTAMPTZ(3),
  CONSTRAINT "environment_files_pkey" PRIMARY KEY ("key")
);
CREATE INDEX "environment_files_org_id_idx" ON "environment_files"("org_id");
