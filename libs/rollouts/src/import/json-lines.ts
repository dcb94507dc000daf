import { isObject, type JsonObject } from '@palestra/protocol';
import { clean, parseTolerant } from '../json/tolerant-json.ts';
import type { Imported } from './imported.ts';
import { linesOf } from './lines.ts';

/** Parses JSON as Python writes it and cleans it as ingest does: no NaN, no NUL, no nesting deeper than 200. Throws SyntaxError. */
export function readJson(text: string): unknown {
  const { value, dirty } = parseTolerant(text);
  return dirty ? clean(value).value : value;
}

/** A bad record. The message is shown to the user who imports. */
export class RecordError extends Error {}

/** Passes every line to `read`. Reports and skips lines that are not JSON objects or that `read` rejects. */
export async function* eachLine(
  bytes: AsyncIterable<Uint8Array>,
  read: (record: JsonObject, line: { number: number; text: string }) => Imported[],
): AsyncGenerator<Imported> {
  for await (const { number, text } of linesOf(bytes)) {
    const where = `line ${number}`;
    if (text === null) {
      yield { where, problem: 'The line is longer than a rollout may be.' };
      continue;
    }
    yield* attempt(where, () => {
      const record = readJson(text);
      if (!isObject(record)) throw new RecordError('The line must be a JSON object.');
      return read(record, { number, text });
    });
  }
}

/** The result of `read`, or its `RecordError` as a problem. Other errors pass. */
export function attempt(where: string, read: () => Imported[]): Imported[] {
  try {
    return read();
  } catch (error) {
    if (error instanceof RecordError) return [{ where, problem: error.message }];
    if (error instanceof SyntaxError) return [{ where, problem: `Not valid JSON: ${error.message}` }];
    throw error;
  }
}
