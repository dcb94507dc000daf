import pino, { type Logger } from 'pino';

/** Structured logs on stderr; request bodies, keys and secrets never get there. */
export function createLogger(level: string): Logger {
  return pino({ level, base: { service: 'palestra' }, redact: ['req.headers', 'headers'] }, pino.destination({ fd: 2, sync: true }));
}
