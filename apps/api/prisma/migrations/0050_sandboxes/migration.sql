-- Sandboxes (ADR 44): what they may use, for the limits of their organisation. Their sessions are in "sessions".
CREATE TABLE "sandboxes" (
  "sid" TEXT NOT NULL PRIMARY KEY,
  -- On the engine.
  "id" TEXT NOT NULL,
  "org_id" TEXT NOT NULL,
  -- With its sidecars.
  "cpus" DOUBLE PRECISION NOT NULL,
  "memory_mb" INTEGER NOT NULL,
  "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE UNIQUE INDEX "sandboxes_id_key" ON "sandboxes" ("id");
CREATE INDEX "sandboxes_org_id_idx" ON "sandboxes" ("org_id");
