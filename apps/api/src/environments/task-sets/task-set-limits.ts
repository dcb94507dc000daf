/** Limits of a task set, all splits together: tasks, and bytes of files. */
export const MAX_TASKS = 1_000_000;
export const MAX_BYTES = 1024 * 1024 * 1024;
/** Limit of one file's tasks as JSON: a compressed file may be much smaller. */
export const MAX_TEXT_BYTES = 2 * 1024 * 1024 * 1024;
