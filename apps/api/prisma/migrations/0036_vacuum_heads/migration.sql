-- Deriving, indexing, comparing and sealing each write a head once more. By default PostgreSQL frees the old versions when they are a fifth of the table:
-- 10^6 rollouts had room for as many more before. These are settings of the table; nothing is rewritten.
ALTER TABLE "rollout_heads" SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000);
