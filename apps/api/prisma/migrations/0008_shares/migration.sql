-- Links that show one rollout to whoever has them, until they expire or are taken back. The token is stored as SHA-256 only.
CREATE TABLE "share_links" (
  "id" UUID NOT NULL DEFAULT gen_random_uuid() PRIMARY KEY,
  "org_id" UUID NOT NULL REFERENCES "organisations" ("id") ON DELETE CASCADE,
  "user_id" UUID NOT NULL REFERENCES "users" ("id") ON DELETE CASCADE,
  "hash" BYTEA NOT NULL,
  "rollout_id" UUID NOT NULL,
  "message_index" INTEGER,
  "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  "expires_at" TIMESTAMPTZ(3) NOT NULL
);
CREATE UNIQUE INDEX "share_links_hash_key" ON "share_links" ("hash");
CREATE INDEX "share_links_org_id_created_at_idx" ON "share_links" ("org_id", "created_at");
ALTER TABLE "memberships" ADD COLUMN "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP;
