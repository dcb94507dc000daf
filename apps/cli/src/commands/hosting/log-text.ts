import { once } from 'node:events';
import { stripVTControlCharacters } from 'node:util';
import type { HostingLogLine } from '@palestra/protocol';
import { coloured } from '../../colour.ts';
import { printable } from '../../printable.ts';

/** A line of an environment or a build, without colours and other control characters. */
export const logText = ({ text }: Pick<HostingLogLine, 'text'>): string => printable(stripVTControlCharacters(text));

/** A line for people, coloured by its severity; lines of the service itself are bold. */
export function shownLine(stream: { isTTY?: boolean }, line: HostingLogLine): string {
  const text = logText(line);
  if (line.severity === 'error') return coloured(stream, 'red', text);
  if (line.severity === 'warning') return coloured(stream, 'yellow', text);
  return line.stream === 'palestra' ? coloured(stream, 'bold', text) : text;
}

/** Waits for a reader that is slower than the log. */
export async function drained(stream: NodeJS.WriteStream): Promise<void> {
  if (stream.writableNeedDrain) await once(stream, 'drain');
}
