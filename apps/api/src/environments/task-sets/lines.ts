const NEWLINE = 0x0a;

/** The lines of a file without line ends. `tooLong` creates the error for a line, counted from 1, of more than `maxBytes`. */
export async function* splitLines(
  pieces: AsyncIterable<Buffer>,
  maxBytes: number,
  tooLong: (line: number) => Error,
): AsyncGenerator<Buffer> {
  let rest: Buffer[] = [];
  let pendingBytes = 0;
  let lines = 0;
  for await (const piece of pieces) {
    let from = 0;
    for (let end = piece.indexOf(NEWLINE, from); end !== -1; end = piece.indexOf(NEWLINE, from)) {
      const tail = piece.subarray(from, end);
      yield rest.length === 0 ? tail : Buffer.concat([...rest, tail]);
      lines += 1;
      [rest, pendingBytes, from] = [[], 0, end + 1];
    }
    rest.push(piece.subarray(from));
    pendingBytes += piece.length - from;
    if (pendingBytes > maxBytes) throw tooLong(lines + 1);
  }
  if (pendingBytes > 0) yield Buffer.concat(rest);
}
