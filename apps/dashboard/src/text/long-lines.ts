/** Longer lines are split, because browsers need seconds to lay out a line of a megabyte. */
export const LINE_CHARACTERS = 10_000;

/** Splits a text into chunks for separate blocks. Only lines over the limit are split; other line breaks stay inside a chunk. */
export function chunkLongLines(text: string, limit = LINE_CHARACTERS): string[] {
  if (text.length <= limit) return [text];
  const chunks: string[] = [];
  let plain = '';
  for (const line of text.split('\n')) {
    if (line.length <= limit) {
      plain += `${line}\n`;
      continue;
    }
    if (plain !== '') chunks.push(plain.slice(0, -1));
    plain = '';
    for (let at = 0; at < line.length;) {
      let end = Math.min(line.length, at + limit);
      // Do not split a surrogate pair.
      if (end < line.length && (line.charCodeAt(end - 1) & 0xfc00) === 0xd800) end -= 1;
      chunks.push(line.slice(at, end));
      at = end;
    }
  }
  if (plain !== '') chunks.push(plain.slice(0, -1));
  return chunks;
}
