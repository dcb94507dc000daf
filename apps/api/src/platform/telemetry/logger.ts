import pino, { type Logger } from 'pino';

/** Structured logs on stderr; request bodies, keys and secrets never get there. */
export function createLogger(level: string): Logger {
  const destination = pino.destination({ fd: 2, sync: true });
  // A terminal that was closed, or a reader that left: the service outlives its log.
  destination.on('error', () => {});
  return pino({ level, base: { service: 'palestra' }, redact: ['req.headers', 'headers'] }, destination);
}
