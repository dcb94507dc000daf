import { UsageError } from '../../settings.ts';

export function portOf(text: string): number {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new UsageError(`expected a port from 0 to 65535, got ${text}`);
  return port;
}

/** Seconds, fractions too. */
export function secondsOf(text: string): number {
  const seconds = Number(text);
  if (!(seconds > 0)) throw new UsageError(`expected seconds, got ${text}`);
  return seconds;
}
