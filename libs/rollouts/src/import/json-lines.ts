import { isObject, type JsonObject } from '@palestra/protocol';
import { clean, parseTolerant } from '../json/tolerant-json.ts';
import type { Imported } from './imported.ts';
import { linesOf } from './lines.ts';

/** JSON as Python writes it, cleaned as ingest does: no NaN, no NUL, nothing nested past 200. Throws SyntaxError. */
export function readJson(text: string): unknown {
  const { value, dirty } = parseTolerant(text);
  return dirty ? clean(value).value : value;
}

/** A bad record: the sentence that its importer is told. */
export class RecordError extends Error {}

/** Every line through `read`; a line that is no JSON object, or that `read` refuses, is told and left out. */
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

/** What `read` made, or the problem that it threw. Only what a record can be guilty of is caught. */
export function attempt(where: string, read: () => Imported[]): Imported[] {
  try {
    return read();
  } catch (error) {
    if (error instanceof RecordError) return [{ where, problem: error.message }];
    if (error instanceof SyntaxError) return [{ where, problem: `Not valid JSON: ${error.message}` }];
    throw error;
  }
}
