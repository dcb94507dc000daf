-- Samples of a query that people review (docs/reviews.md). Items are fixed when the queue is created.
CREATE TABLE "review_queues" (
  "id" UUID NOT NULL DEFAULT gen_random_uuid() PRIMARY KEY,
  "org_id" UUID NOT NULL REFERENCES "organisations" ("id") ON DELETE CASCADE,
  "run_seq" INTEGER,
  "name" TEXT NOT NULL,
  "query" TEXT NOT NULL,
  "seed" INTEGER NOT NULL,
  "mode" TEXT NOT NULL,
  "labels" TEXT[] NOT NULL,
  "criteria" TEXT,
  "overlap" SMALLINT NOT NULL,
  "reviewers" UUID[] NOT NULL,
  "user_id" UUID NOT NULL,
  "author" TEXT NOT NULL,
  "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  "closed_at" TIMESTAMPTZ(3)
);
CREATE INDEX "review_queues_org_id_created_at_idx" ON "review_queues" ("org_id", "created_at");
CREATE INDEX "review_queues_run_seq_idx" ON "review_queues" ("run_seq");

CREATE TABLE "review_items" (
  "queue_id" UUID NOT NULL REFERENCES "review_queues" ("id") ON DELETE CASCADE,
  "position" INTEGER NOT NULL,
  "org_id" UUID NOT NULL,
  "rollout_seq" BIGINT NOT NULL,
  "other_seq" BIGINT,
  PRIMARY KEY ("queue_id", "position")
);
CREATE INDEX "review_items_rollout_seq_idx" ON "review_items" ("rollout_seq");
CREATE INDEX "review_items_other_seq_idx" ON "review_items" ("other_seq");

-- A claim until the choice is known. Names stay when a member leaves.
CREATE TABLE "review_answers" (
  "queue_id" UUID NOT NULL,
  "position" INTEGER NOT NULL,
  "user_id" UUID NOT NULL,
  "id" UUID NOT NULL DEFAULT gen_random_uuid(),
  "org_id" UUID NOT NULL,
  "author" TEXT NOT NULL,
  "choice" TEXT,
  "comment" TEXT,
  "skipped" BOOLEAN NOT NULL DEFAULT false,
  "claimed_until" TIMESTAMPTZ(3),
  "answered_at" TIMESTAMPTZ(3),
  PRIMARY KEY ("queue_id", "position", "user_id"),
  FOREIGN KEY ("queue_id", "position") REFERENCES "review_items" ("queue_id", "position") ON DELETE CASCADE
);
CREATE UNIQUE INDEX "review_answers_id_key" ON "review_answers" ("id");
CREATE INDEX "review_answers_queue_id_user_id_answered_at_idx" ON "review_answers" ("queue_id", "user_id", "answered_at");

-- The annotations of an answer go with it.
ALTER TABLE "annotations" ADD COLUMN "answer_id" UUID REFERENCES "review_answers" ("id") ON DELETE CASCADE;
CREATE INDEX "annotations_answer_id_idx" ON "annotations" ("answer_id");
