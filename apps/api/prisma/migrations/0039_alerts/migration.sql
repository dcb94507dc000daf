-- Receivers of signed webhooks. "secrets" is sealed with the service's key (ADR 29).
CREATE TABLE "webhooks" (
  "id" UUID NOT NULL DEFAULT gen_random_uuid() PRIMARY KEY,
  "org_id" UUID NOT NULL REFERENCES "organisations" ("id") ON DELETE CASCADE,
  "name" TEXT NOT NULL,
  "url" TEXT NOT NULL,
  "secrets" BYTEA NOT NULL,
  -- Nothing is sent to a disabled one. The reason is shown.
  "disabled_at" TIMESTAMPTZ(3),
  "disabled_reason" TEXT,
  "author" TEXT NOT NULL,
  "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE INDEX "webhooks_org_id_idx" ON "webhooks" ("org_id");

CREATE TABLE "alerts" (
  "id" UUID NOT NULL DEFAULT gen_random_uuid() PRIMARY KEY,
  "org_id" UUID NOT NULL REFERENCES "organisations" ("id") ON DELETE CASCADE,
  "name" TEXT NOT NULL,
  -- Name of the runs, * stands for any text; null = every run.
  "runs" TEXT,
  "condition" JSONB NOT NULL,
  "webhook_id" UUID REFERENCES "webhooks" ("id") ON DELETE SET NULL,
  -- A muted alert records its changes and notifies nobody.
  "muted" BOOLEAN NOT NULL DEFAULT false,
  "author" TEXT NOT NULL,
  "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  -- Since then its condition is this one: runs before are not judged.
  "since" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE INDEX "alerts_org_id_id_idx" ON "alerts" ("org_id", "id");
CREATE INDEX "alerts_webhook_id_idx" ON "alerts" ("webhook_id");

-- What an alert found in a run, and the figures that it has seen.
CREATE TABLE "alert_states" (
  "alert_id" UUID NOT NULL REFERENCES "alerts" ("id") ON DELETE CASCADE,
  "run_seq" INTEGER NOT NULL,
  "org_id" UUID NOT NULL,
  "firing" BOOLEAN NOT NULL,
  -- Time of the last change.
  "since" TIMESTAMPTZ(3) NOT NULL,
  -- Version of the run's figures that was judged.
  "version" BIGINT NOT NULL,
  -- The last judged step.
  "step" INTEGER,
  "checked_at" TIMESTAMPTZ(3) NOT NULL,
  "evidence" JSONB,
  PRIMARY KEY ("alert_id", "run_seq")
);
CREATE INDEX "alert_states_run_seq_idx" ON "alert_states" ("run_seq");
CREATE INDEX "alert_states_firing_idx" ON "alert_states" ("org_id") WHERE "firing";

CREATE TABLE "alert_events" (
  "seq" BIGSERIAL NOT NULL PRIMARY KEY,
  "id" UUID NOT NULL DEFAULT gen_random_uuid() UNIQUE,
  "org_id" UUID NOT NULL,
  "alert_id" UUID NOT NULL REFERENCES "alerts" ("id") ON DELETE CASCADE,
  "run_seq" INTEGER NOT NULL,
  "kind" TEXT NOT NULL,
  "at" TIMESTAMPTZ(3) NOT NULL,
  "muted" BOOLEAN NOT NULL,
  "evidence" JSONB NOT NULL
);
CREATE INDEX "alert_events_org_id_seq_idx" ON "alert_events" ("org_id", "seq");
CREATE INDEX "alert_events_alert_id_seq_idx" ON "alert_events" ("alert_id", "seq");
CREATE INDEX "alert_events_run_seq_idx" ON "alert_events" ("run_seq");

-- Up to which event a member has read.
CREATE TABLE "alert_reads" (
  "org_id" UUID NOT NULL REFERENCES "organisations" ("id") ON DELETE CASCADE,
  "user_id" UUID NOT NULL REFERENCES "users" ("id") ON DELETE CASCADE,
  "event_seq" BIGINT NOT NULL,
  PRIMARY KEY ("org_id", "user_id")
);

-- A message to a receiver. Its id and body are the same in every attempt.
CREATE TABLE "webhook_deliveries" (
  "id" UUID NOT NULL DEFAULT gen_random_uuid() PRIMARY KEY,
  "org_id" UUID NOT NULL,
  "webhook_id" UUID NOT NULL REFERENCES "webhooks" ("id") ON DELETE CASCADE,
  "event_id" UUID REFERENCES "alert_events" ("id") ON DELETE CASCADE,
  "body" TEXT NOT NULL,
  -- waiting, delivered or failed
  "state" TEXT NOT NULL,
  -- Attempts since it was last requested; decides the next pause.
  "tries" INTEGER NOT NULL DEFAULT 0,
  "next_at" TIMESTAMPTZ(3),
  "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE INDEX "webhook_deliveries_due_idx" ON "webhook_deliveries" ("next_at") WHERE "state" = 'waiting';
CREATE INDEX "webhook_deliveries_waiting_idx" ON "webhook_deliveries" ("org_id") WHERE "state" = 'waiting';
CREATE INDEX "webhook_deliveries_webhook_id_idx" ON "webhook_deliveries" ("webhook_id", "created_at", "id");
CREATE INDEX "webhook_deliveries_event_id_idx" ON "webhook_deliveries" ("event_id");
CREATE INDEX "webhook_deliveries_created_at_idx" ON "webhook_deliveries" ("created_at");

CREATE TABLE "webhook_attempts" (
  "delivery_id" UUID NOT NULL REFERENCES "webhook_deliveries" ("id") ON DELETE CASCADE,
  "at" TIMESTAMPTZ(3) NOT NULL,
  "org_id" UUID NOT NULL,
  -- HTTP status; null = no answer.
  "status" INTEGER,
  "latency_ms" INTEGER NOT NULL,
  -- Why the attempt failed; null = it succeeded.
  "error" TEXT,
  -- Beginning of the answer.
  "response" TEXT NOT NULL,
  PRIMARY KEY ("delivery_id", "at")
);
