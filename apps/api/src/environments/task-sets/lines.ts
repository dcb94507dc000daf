const NEWLINE = 0x0a;

/** The lines of a file without their ends. `tooLong` makes the error for one, counted from 1, that is longer than `maxBytes`. */
export async function* linesOf(pieces: AsyncIterable<Buffer>, maxBytes: number, tooLong: (line: number) => Error): AsyncGenerator<Buffer> {
  let rest: Buffer[] = [];
  let waiting = 0;
  let lines = 0;
  for await (const piece of pieces) {
    let from = 0;
    for (let end = piece.indexOf(NEWLINE, from); end !== -1; end = piece.indexOf(NEWLINE, from)) {
      const tail = piece.subarray(from, end);
      yield rest.length === 0 ? tail : Buffer.concat([...rest, tail]);
      lines += 1;
      [rest, waiting, from] = [[], 0, end + 1];
    }
    rest.push(piece.subarray(from));
    waiting += piece.length - from;
    if (waiting > maxBytes) throw tooLong(lines + 1);
  }
  if (waiting > 0) yield Buffer.concat(rest);
}
