-- What the model said in a turn of a recorded text session, secrets hidden; its recording is written from it.
ALTER TABLE "text_turns" ADD COLUMN "said" TEXT;
