import { existsSync, readFileSync } from 'node:fs';

/** Processes of Linux, by `/proc`. */
export const isRunning = (pid: number): boolean => existsSync(`/proc/${pid}`);

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    // The process has ended.
    return '';
  }
}

export const childrenOf = (pid: number): number[] =>
  read(`/proc/${pid}/task/${pid}/children`)
    .split(' ')
    .filter((text) => text.trim() !== '')
    .map(Number);

/** The process and all that it started, and that those started. */
export const treeOf = (pid: number): number[] => [pid, ...childrenOf(pid).flatMap(treeOf)];

/** Without those that have ended and whose parent has not asked for their status yet. */
export const livingOf = (pids: readonly number[]): number[] => pids.filter((pid) => /\) [^Z]/.test(read(`/proc/${pid}/stat`)));

export const commandOf = (pid: number): string => read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ');

/** The child that runs the jobs of a service; undefined while there is none. */
export const workerOf = (pid: number): number | undefined => childrenOf(pid).find((child) => commandOf(child).includes('worker-main'));
