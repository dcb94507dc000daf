import { UsageError } from '../../settings.ts';

export function portOf(text: string): number {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new UsageError(`Invalid port "${text}". Expected a number from 0 to 65535.`);
  return port;
}

/** Parses a positive number of seconds, with fractions. */
export function secondsOf(text: string): number {
  const seconds = Number(text);
  if (!(seconds > 0)) throw new UsageError(`Invalid time "${text}". Expected a number of seconds above 0.`);
  return seconds;
}
