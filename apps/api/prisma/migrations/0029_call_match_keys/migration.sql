-- What identifies a call for uploads that name no session (apps/api/src/store/derive/verify/match-key.ts). Calls from before have no key.
ALTER TABLE "session_calls" ADD COLUMN "match_key" BIGINT;
CREATE INDEX "session_calls_match_idx" ON "session_calls"("match_key", "started_at") WHERE "match_key" IS NOT NULL;
