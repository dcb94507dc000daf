/** A set of uploaded tasks, all splits together: at most so many tasks, and bytes of files. */
export const MAX_TASKS = 1_000_000;
export const MAX_BYTES = 1024 * 1024 * 1024;
/** Of the tasks of one file as JSON: a compressed file may be much smaller. */
export const MAX_TEXT_BYTES = 2 * 1024 * 1024 * 1024;
