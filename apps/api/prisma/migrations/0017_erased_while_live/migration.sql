-- Sessions whose rollout was erased while they ran: their calls go when they have ended (ADR 11).
CREATE INDEX "sessions_erased_idx" ON "sessions"("sid") WHERE "recorded_seq" = -2;
