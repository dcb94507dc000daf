/** A body is longer than its reader allows. */
export class BodyTooLargeError extends Error {}

/**
 * Reads the body of a server that we do not control. Throws `BodyTooLargeError` after `maxBytes` (of the decompressed body) and closes the
 * connection. The deadline of the request must also hold for its body, as the signal of `fetch` does.
 */
export async function readBounded(body: AsyncIterable<Uint8Array> | null, maxBytes: number): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  // Leaving the loop ends the body.
  for await (const piece of body ?? []) {
    size += piece.length;
    if (size > maxBytes) throw new BodyTooLargeError(`The response is longer than ${maxBytes} bytes.`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/** The same as UTF-8, without a byte order mark. */
export const readBoundedText = async (body: AsyncIterable<Uint8Array> | null, maxBytes: number): Promise<string> =>
  new TextDecoder().decode(await readBounded(body, maxBytes));
