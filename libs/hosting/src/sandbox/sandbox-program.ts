/** The program of a sandbox: it runs for ever, and takes the end of orphaned processes. */
export const HOLD = ['/bin/sh', '-c', 'trap "exit 0" TERM INT; while :; do sleep 3600 & wait $!; done'];

/**
 * What root needs to install packages and to hand files to other users. Not among them: raw sockets, devices, mounts, and everything that
 * reaches beyond the container.
 */
export const CAPABILITIES = ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'KILL', 'SETGID', 'SETUID'];

/** Exit status of a command that took too long. */
export const TIMEOUT_STATUS = 124;

/** Ends a command and what it began in its process group. */
export const killCommand = (processId: number): string[] => [
  '/bin/sh',
  '-c',
  `kill -s KILL -- -${processId} 2>/dev/null || kill -s KILL ${processId}`,
];
