-- Turns of the model that tools or users answered: verl counts these, too. Rows get it as they are normalised again (normaliser 2).
ALTER TABLE "rollouts" ADD COLUMN "tool_turns" INTEGER;
-- Where steps are not known (step -1): the figures by window of arrival, beside those of everything together. No list reads them.
ALTER TABLE "step_rollups" ADD COLUMN "windows" JSONB;
