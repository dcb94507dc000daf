import { inflateSync } from 'node:zlib';

/** What a filter of PNG expects at a byte; `a` is left of it, `b` above, `c` left above. */
function predicted(filter: number, a: number, b: number, c: number): number {
  if (filter < 4) return filter === 0 ? 0 : filter === 1 ? a : filter === 2 ? b : (a + b) >> 1;
  const [pa, pb, pc] = [Math.abs(b - c), Math.abs(a - c), Math.abs(a + b - 2 * c)];
  return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
}

/** Size and colours of a PNG of eight bits per channel. Throws if it is damaged. */
export function pixelsOf(png: Buffer) {
  if (png.toString('latin1', 0, 8) !== '\x89PNG\r\n\x1a\n') throw new Error('This is not a PNG.');
  const parts: Buffer[] = [];
  let header: Buffer | undefined;
  for (let at = 8; at < png.length;) {
    const length = png.readUInt32BE(at);
    const type = png.toString('latin1', at + 4, at + 8);
    const data = png.subarray(at + 8, at + 8 + length);
    if (type === 'IHDR') header = data;
    if (type === 'IDAT') parts.push(data);
    at += length + 12;
  }
  const [width, height, channels] = [header!.readUInt32BE(0), header!.readUInt32BE(4), { 2: 3, 6: 4 }[header![9]!]!];
  const raw = inflateSync(Buffer.concat(parts));
  const row = width * channels;
  const pixels = Buffer.alloc(row * height);
  for (let y = 0; y < height; y += 1) {
    const filter = raw[y * (row + 1)]!;
    for (let x = 0; x < row; x += 1) {
      const at = y * row + x;
      const a = x < channels ? 0 : pixels[at - channels]!;
      const b = y === 0 ? 0 : pixels[at - row]!;
      const c = x < channels || y === 0 ? 0 : pixels[at - row - channels]!;
      pixels[at] = raw[at + y + 1]! + predicted(filter, a, b, c);
    }
  }
  /** The numbers of pixels of each colour in the rows `from` to `to`. */
  const coloursIn = (from: number, to: number) => {
    const colours = new Map<string, number>();
    for (let at = row * from; at < row * to; at += channels) {
      const colour = pixels.toString('hex', at, at + 3);
      colours.set(colour, (colours.get(colour) ?? 0) + 1);
    }
    return colours;
  };
  return { width, height, coloursIn };
}
