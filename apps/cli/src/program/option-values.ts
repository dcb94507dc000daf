import { UsageError } from '../server-settings.ts';

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

/** Parses a whole number from 0 to 10 000. */
export function countOf(text: string): number {
  const count = Number(text);
  if (!Number.isInteger(count) || count < 0 || count > 10_000)
    throw new UsageError(`Invalid number "${text}". Expected a whole number from 0 to 10 000.`);
  return count;
}

/** Parses two numbers such as `0,1`, the smaller one first. */
export function rangeOf(text: string): [number, number] {
  const [low, high, ...rest] = text.split(',').map(Number);
  if (!Number.isFinite(low) || !Number.isFinite(high) || rest.length > 0 || low! >= high!)
    throw new UsageError(`Invalid range "${text}". Expected two numbers such as 0,1 or -1,1.`);
  return [low!, high!];
}
