-- Blocks have the words of messages (ADR 14); no statement reads this index any more. It was a seventh of what a short rollout takes.
DROP INDEX "rollout_search_words_idx";
