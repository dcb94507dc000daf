import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { MAX_LINE_CHARS } from '../provider/provider.port.ts';

/** Calls `onLine` with each line of a program's output, without its end. Lines over `MAX_LINE_CHARS` become several. */
export function onLines(stream: Readable, onLine: (text: string) => void): void {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  const take = (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop()!;
    for (const line of lines) split(line.endsWith('\r') ? line.slice(0, -1) : line, onLine);
    while (rest.length > MAX_LINE_CHARS) {
      onLine(rest.slice(0, MAX_LINE_CHARS));
      rest = rest.slice(MAX_LINE_CHARS);
    }
  };
  stream.on('data', (chunk: Buffer) => take(decoder.write(chunk)));
  stream.on('end', () => {
    take(decoder.end());
    if (rest !== '') onLine(rest);
    rest = '';
  });
}

function split(line: string, onLine: (text: string) => void): void {
  for (let start = 0; start === 0 || start < line.length; start += MAX_LINE_CHARS) onLine(line.slice(start, start + MAX_LINE_CHARS));
}
