-- Alerts on hosted environments: an event is about a run or about an environment.
ALTER TABLE "alert_events" ALTER COLUMN "run_seq" DROP NOT NULL;
ALTER TABLE "alert_events" ADD COLUMN "environment_id" UUID REFERENCES "environments" ("id") ON DELETE CASCADE;
CREATE INDEX "alert_events_environment_id_idx" ON "alert_events" ("environment_id");

-- What an alert found of a hosted environment.
CREATE TABLE "alert_environment_states" (
  "alert_id" UUID NOT NULL REFERENCES "alerts" ("id") ON DELETE CASCADE,
  "environment_id" UUID NOT NULL REFERENCES "environments" ("id") ON DELETE CASCADE,
  "org_id" UUID NOT NULL,
  "firing" BOOLEAN NOT NULL,
  -- Time of the last change.
  "since" TIMESTAMPTZ(3) NOT NULL,
  "evidence" JSONB NOT NULL,
  PRIMARY KEY ("alert_id", "environment_id")
);
CREATE INDEX "alert_environment_states_environment_id_idx" ON "alert_environment_states" ("environment_id");
CREATE INDEX "alert_environment_states_org_id_idx" ON "alert_environment_states" ("org_id");
