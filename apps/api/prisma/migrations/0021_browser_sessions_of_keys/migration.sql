-- A browser session can do what the key that opened it can do, and ends with that key. Older sessions do not say which key opened them:
-- those browsers sign in again.
DELETE FROM "browser_sessions";
ALTER TABLE "browser_sessions"
  ADD COLUMN "id" UUID NOT NULL DEFAULT gen_random_uuid(),
  ADD COLUMN "key_id" UUID,
  ADD COLUMN "scopes" TEXT[],
  ADD COLUMN "user_agent" TEXT NOT NULL DEFAULT '';
CREATE UNIQUE INDEX "browser_sessions_id_key" ON "browser_sessions"("id");
ALTER TABLE "browser_sessions" ADD CONSTRAINT "browser_sessions_key_id_fkey"
  FOREIGN KEY ("key_id") REFERENCES "api_keys"("id") ON DELETE CASCADE ON UPDATE CASCADE;

DELETE FROM "sign_in_tokens";
ALTER TABLE "sign_in_tokens"
  ADD COLUMN "key_id" UUID,
  ADD COLUMN "scopes" TEXT[];

ALTER TABLE "api_keys" ADD COLUMN "expires_at" TIMESTAMPTZ(3);
