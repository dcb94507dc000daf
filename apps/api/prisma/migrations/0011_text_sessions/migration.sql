-- Text sessions: how a model's text is read, and which turn made which call. Turns that made none are in no other table.
CREATE TABLE "text_sessions" (
    "sid" TEXT NOT NULL,
    "parse" TEXT NOT NULL,
    "max_turns" INTEGER NOT NULL,
    "environment" TEXT NOT NULL,
    "action" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "text_sessions_pkey" PRIMARY KEY ("sid")
);

CREATE TABLE "text_turns" (
    "sid" TEXT NOT NULL,
    "turn" INTEGER NOT NULL,
    "fingerprint" TEXT NOT NULL,
    "task_id" TEXT,
    "reward" TEXT,
    "done" BOOLEAN,
    "counted" BOOLEAN,

    CONSTRAINT "text_turns_pkey" PRIMARY KEY ("sid", "turn")
);

CREATE UNIQUE INDEX "text_turns_task_id_key" ON "text_turns"("task_id");
