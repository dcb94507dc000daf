-- One mark for each change, and no longer for each step: who marks a step does not wait for who computes it.
ALTER TABLE "dirty_steps" DROP CONSTRAINT "dirty_steps_pkey", ADD COLUMN "id" BIGSERIAL,
  ADD CONSTRAINT "dirty_steps_pkey" PRIMARY KEY ("run_seq", "phase", "step", "id");
