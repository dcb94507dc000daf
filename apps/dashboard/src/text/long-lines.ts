/** A line of more characters than this is cut in pieces: browsers lay out one line of a megabyte in seconds. */
export const LINE_CHARACTERS = 10_000;

/** The text as pieces that each may be a block of their own: line breaks stay inside, only lines that are too long are cut. */
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
      // Not between the halves of a surrogate pair.
      if (end < line.length && (line.charCodeAt(end - 1) & 0xfc00) === 0xd800) end -= 1;
      chunks.push(line.slice(at, end));
      at = end;
    }
  }
  if (plain !== '') chunks.push(plain.slice(0, -1));
  return chunks;
}
