/** npm forwards the Ctrl-C that the terminal already sent to every process: signals of the same moment are one. */
const SAME_MS = 1_000;

/** For a process that is stopping after a signal: a later SIGINT ends it at once. */
export function exitOnSecondInterrupt(): void {
  const firstAt = performance.now();
  process.on('SIGINT', () => {
    if (performance.now() - firstAt > SAME_MS) process.exit(130);
  });
}
