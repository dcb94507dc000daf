import { ClientError } from './errors.ts';

/** Longer lines are no lines of a log: the server cuts them at 8 192 characters. */
const MAX_LINE_CHARS = 1_000_000;

/** The values of newline-delimited JSON, as they arrive. Skips empty lines, which keep a connection alive. */
export async function* jsonLines<T>(stream: AsyncIterable<Uint8Array>): AsyncGenerator<T> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const bytes of stream) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n');
    rest = lines.pop()!;
    for (const line of lines) if (line.trim() !== '') yield parse<T>(line);
    if (rest.length > MAX_LINE_CHARS) throw notALog('a line is too long');
  }
  if (rest.trim() !== '') yield parse<T>(rest);
}

function parse<T>(line: string): T {
  try {
    return JSON.parse(line) as T;
  } catch (error) {
    throw notALog((error as Error).message);
  }
}

const notALog = (reason: string): ClientError =>
  new ClientError(`The server did not answer with lines of JSON: ${reason}.`, {
    failureClass: 'infrastructure',
    retryable: false,
    advice: 'Check that the address is that of a Palestra service of this version.',
  });
