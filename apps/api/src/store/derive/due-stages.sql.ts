import { QUIET } from './verify/verify.sql.ts';

/** Stages of derivation that may have work. */
export interface DueStages {
  /** Narrow rows. */
  rows: boolean;
  figures: boolean;
  /** Steps to infer, and messages that count as missing now. */
  upkeep: boolean;
  search: boolean;
  /** Comparison with the session ledger. */
  ledger: boolean;
}

/**
 * What an idle process asks, once for all of its loops. Plan: the first entries of dirty_steps_pkey, rollout_search_marks_pkey and of partial
 * indexes: rollout_heads_dirty_idx, rollout_heads_gaps_at_idx, runs_inference_due_idx, rollout_heads_unsearched_idx,
 * rollout_heads_unverified_idx.
 */
export const DUE_STAGES = `SELECT
  EXISTS (SELECT FROM rollout_heads WHERE dirty AND run_seq IS NOT NULL) AS rows,
  EXISTS (SELECT FROM dirty_steps) AS figures,
  EXISTS (SELECT FROM rollout_heads WHERE gaps_at <= now()) OR EXISTS (SELECT FROM runs WHERE inference_due AND deleted_at IS NULL) AS upkeep,
  EXISTS (SELECT FROM rollout_heads WHERE unsearched AND run_seq IS NOT NULL) OR EXISTS (SELECT FROM rollout_search_marks) AS search,
  EXISTS (SELECT FROM rollout_heads WHERE unverified AND run_seq IS NOT NULL AND verify_at <= now() AND NOT dirty
    AND (finished OR last_at < now() - ${QUIET})) AS ledger`;
