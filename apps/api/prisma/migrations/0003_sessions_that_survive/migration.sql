-- Owners, secrets, recording, forks, slots. What was called idle timeout was silence of pings, too: that is the heartbeat now.
ALTER TABLE "sessions" RENAME COLUMN "idle_timeout_ms" TO "heartbeat_timeout_ms";
ALTER TABLE "sessions"
  ADD COLUMN "environment" TEXT,
  ADD COLUMN "owner_replica_id" TEXT,
  ADD COLUMN "written_by" TEXT,
  ADD COLUMN "create_broken" BOOLEAN NOT NULL DEFAULT false,
  ADD COLUMN "secrets" BYTEA,
  ADD COLUMN "recording" TEXT,
  ADD COLUMN "recorded_seq" BIGINT,
  ADD COLUMN "forked_from" TEXT,
  ADD COLUMN "forked_at_call" INTEGER,
  ADD COLUMN "queued_at" TIMESTAMPTZ(3),
  ADD COLUMN "waiting_on" TEXT,
  ADD COLUMN "slot_limits" TEXT,
  ADD COLUMN "admitted_at" TIMESTAMPTZ(3),
  ADD COLUMN "idle_timeout_ms" INTEGER NOT NULL DEFAULT 86400000,
  ADD COLUMN "last_request_at" TIMESTAMPTZ(3);
UPDATE "sessions" SET "last_request_at" = "last_seen_at";
ALTER TABLE "sessions" ALTER COLUMN "last_request_at" SET NOT NULL, ALTER COLUMN "idle_timeout_ms" DROP DEFAULT;

ALTER TABLE "session_calls" ADD COLUMN "broken_at" TIMESTAMPTZ(3), ADD COLUMN "joined_by" TEXT;

ALTER TABLE "session_replicas"
  ADD COLUMN "address" TEXT NOT NULL DEFAULT '',
  ADD COLUMN "draining" BOOLEAN NOT NULL DEFAULT false,
  ADD COLUMN "started_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP;

ALTER TABLE "environments" ADD COLUMN "session_policy" JSONB;
ALTER TABLE "organisations" ADD COLUMN "max_sessions" INTEGER;
ALTER TABLE "api_keys" ADD COLUMN "max_sessions" INTEGER;
ALTER TABLE "rollouts" ADD COLUMN "failure_class" TEXT;

DROP INDEX "sessions_org_id_created_at_idx";
CREATE INDEX "sessions_org_id_created_at_sid_idx" ON "sessions"("org_id", "created_at" DESC, "sid");

-- Partial indexes, which Prisma has none of: each holds only what is going on right now.
CREATE INDEX "sessions_live_owner_idx" ON "sessions"("owner_replica_id") WHERE "ended_at" IS NULL AND "owner_replica_id" IS NOT NULL;
CREATE INDEX "sessions_slots_idx" ON "sessions"("version_id", "owner_replica_id", "key_id", "org_id") WHERE "ended_at" IS NULL AND "admitted_at" IS NOT NULL;
CREATE INDEX "sessions_waiting_idx" ON "sessions"("queued_at") WHERE "waiting_on" IS NOT NULL;
CREATE INDEX "sessions_live_idx" ON "sessions"("org_id", "version_id") WHERE "ended_at" IS NULL;
CREATE INDEX "sessions_to_record_idx" ON "sessions"("sid") WHERE "recording" IS NOT NULL AND ("recorded_seq" IS NULL OR "recorded_seq" >= 0);
CREATE INDEX "session_calls_broken_idx" ON "session_calls"("sid") WHERE "broken_at" IS NOT NULL;
