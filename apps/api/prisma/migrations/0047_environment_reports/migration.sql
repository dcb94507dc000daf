-- What validation and scripted players found for a version of an environment. "org_id" is null for bundled environments.
CREATE TABLE "environment_reports" (
  "version_id" UUID NOT NULL PRIMARY KEY REFERENCES "environment_versions" ("id") ON DELETE CASCADE,
  "org_id" UUID,
  "report" JSONB NOT NULL,
  "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE INDEX "environment_reports_org_id_idx" ON "environment_reports" ("org_id");
