-- The task of the session that a rollout was matched with: {"split", "index"}, or {"ambiguous": true} if sessions of several tasks match.
ALTER TABLE "rollout_meta" ADD COLUMN "ledger_task" JSONB;
