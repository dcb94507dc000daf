-- Finds the session that a rollout was recorded from, whose calls are erased with it. Partial and of an expression, which Prisma cannot say.
CREATE INDEX "sessions_recorded_rollout_idx" ON "sessions"((("recording"::jsonb) ->> 'rolloutId')) WHERE "recording" IS NOT NULL;
