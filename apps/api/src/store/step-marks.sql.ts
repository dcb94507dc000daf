/**
 * Ends an INSERT INTO dirty_steps. A mark that stands is locked until the transaction ends, so that whoever makes steps passes it over, or waits: left alone (DO NOTHING)
 * it could be taken and the step made before anybody else sees what this transaction did, and nothing would be left to have it made again.
 */
export const KEEP_MARK = 'ON CONFLICT (run_seq, phase, step) DO UPDATE SET step = excluded.step';
