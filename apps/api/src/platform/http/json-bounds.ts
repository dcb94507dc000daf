import { JsonBounds, PalestraError } from '@palestra/protocol';

/** Throws `invalid_json` for a document that is too deep or has too many values. It does not check the syntax. */
export function assertBoundedJson(text: Buffer, maxDepth: number, maxValues?: number): void {
  const excess = new JsonBounds(maxDepth, maxValues).push(text);
  if (excess !== null) throw new PalestraError('invalid_json', { detail: `The JSON is ${excess}.` });
}
