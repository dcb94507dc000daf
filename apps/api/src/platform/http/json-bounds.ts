import { JsonBounds, PalestraError } from '@palestra/protocol';

/** Throws `invalid_json` for a document too deep or with too many values to parse safely. Whether it is JSON at all is for the parser. */
export function assertBoundedJson(text: Buffer, maxDepth: number, maxValues?: number): void {
  const excess = new JsonBounds(maxDepth, maxValues).push(text);
  if (excess !== null) throw new PalestraError('invalid_json', { detail: `The JSON is ${excess}.` });
}
