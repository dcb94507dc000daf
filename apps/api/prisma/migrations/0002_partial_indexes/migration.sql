-- Rollouts whose turns are still to be counted (rollout.sql.ts settleTurns); Prisma has no partial indexes.
CREATE INDEX rollouts_turns_to_count_idx ON rollouts (updated_at) WHERE turns_counted IS NULL;
