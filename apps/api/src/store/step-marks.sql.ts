/**
 * Ends an INSERT INTO dirty_steps. It locks an existing mark until the transaction ends, so that a process that computes steps skips the
 * mark or waits. With DO NOTHING another process could compute the step and delete the mark before this transaction's rows are visible, and
 * the step would stay outdated.
 */
export const KEEP_MARK = 'ON CONFLICT (run_seq, phase, step) DO UPDATE SET step = excluded.step';
