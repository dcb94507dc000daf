-- Figures are computed from plain columns (ADR 23 is withdrawn). PostgreSQL drops a column without rewriting the table.
ALTER TABLE "rollouts" DROP COLUMN "facts";
ALTER TABLE "rollout_tools" DROP COLUMN "facts";
ALTER TABLE "rollout_groups" DROP COLUMN "facts";
