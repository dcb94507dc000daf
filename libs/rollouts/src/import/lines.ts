/** A line of a text file without its end. `number` counts from 1. */
export interface Line {
  number: number;
  /** null if the line exceeds the limit. */
  text: string | null;
}

/** A rollout is at most 200 MB (docs/reference/metrics.md#size-limits). A longer line is skipped and never held in memory. */
export const MAX_LINE_BYTES = 256 * 1024 * 1024;

/** Streams the non-empty lines of a file. Invalid UTF-8 becomes U+FFFD; a byte order mark is removed. Memory: one line. */
export async function* linesOf(bytes: AsyncIterable<Uint8Array>, maxBytes = MAX_LINE_BYTES): AsyncGenerator<Line> {
  let pieces: Uint8Array[] = [];
  let size = 0;
  let number = 0;
  const take = (): Line | null => {
    number += 1;
    const tooLong = size > maxBytes;
    const text = tooLong ? null : new TextDecoder().decode(Buffer.concat(pieces));
    pieces = [];
    size = 0;
    return text !== null && text.trim() === '' ? null : { number, text };
  };
  const hold = (piece: Uint8Array) => {
    size += piece.length;
    if (size > maxBytes) pieces = [];
    else pieces.push(piece);
  };
  for await (const chunk of bytes) {
    let from = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, from)) {
      hold(chunk.subarray(from, end));
      from = end + 1;
      const line = take();
      if (line) yield line;
    }
    if (from < chunk.length) hold(chunk.subarray(from));
  }
  const line = size > 0 ? take() : null;
  if (line) yield line;
}
