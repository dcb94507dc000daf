import pino, { type Logger } from 'pino';

/** Structured logs on stderr, without request bodies, keys and secrets. */
export function createLogger(level: string): Logger {
  const destination = pino.destination({ fd: 2, sync: true });
  // The terminal or the reader of the log may close: the service continues without a log.
  destination.on('error', () => {});
  return pino({ level, base: { service: 'palestra' }, redact: ['req.headers', 'headers'] }, destination);
}
