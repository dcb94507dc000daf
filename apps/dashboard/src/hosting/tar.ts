/** A tar archive (POSIX.1-2001, pax) of regular files, as the API unpacks it. Times and owners are constant: equal files give equal bytes. */

const BLOCK = 512;
const encoder = new TextEncoder();

export interface TarFile {
  /** Its path in the archive, with "/". */
  name: string;
  content: Blob;
  isExecutable: boolean;
}

/** Yields the archive in pieces. */
export async function* tarOf(files: Iterable<TarFile>): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for (const file of files) {
    yield* headersOf(file);
    for await (const piece of piecesOf(file.content)) yield piece;
    yield padding(file.content.size);
  }
  yield new Uint8Array(2 * BLOCK);
}

/** A name that a header cannot hold is in a header before it. */
function* headersOf({ name, content, isExecutable }: TarFile): Generator<Uint8Array<ArrayBuffer>> {
  const bytes = encoder.encode(name);
  const isPlain = bytes.length <= 100 && bytes.length === name.length;
  if (!isPlain) {
    const record = encoder.encode(paxRecord('path', name, bytes.length));
    yield header({ name: encoder.encode('pax'), size: record.length, mode: 0o644, type: 'x' });
    yield record;
    yield padding(record.length);
  }
  const short = isPlain ? bytes : encoder.encode('long-name');
  yield header({ name: short, size: content.size, mode: isExecutable ? 0o755 : 0o644, type: '0' });
}

/** `25 path=...\n`: a length that counts itself. */
function paxRecord(key: string, value: string, valueBytes: number): string {
  const rest = key.length + valueBytes + 3;
  let length = rest + String(rest).length;
  length = rest + String(length).length;
  return `${length} ${key}=${value}\n`;
}

function header({ name, size, mode, type }: { name: Uint8Array; size: number; mode: number; type: '0' | 'x' }): Uint8Array<ArrayBuffer> {
  const block = new Uint8Array(BLOCK);
  const write = (text: string, at: number) => block.set(encoder.encode(text), at);
  const octal = (value: number, digits: number) => value.toString(8).padStart(digits, '0');
  block.set(name, 0);
  write(`${octal(mode, 7)}\0${octal(0, 7)}\0${octal(0, 7)}\0${octal(size, 11)}\0${octal(0, 11)}\0`, 100);
  // The checksum counts its own field as spaces.
  write('        ', 148);
  write(type, 156);
  write('ustar\u000000', 257);
  write(
    `${octal(
      block.reduce((sum, byte) => sum + byte, 0),
      6,
    )}\0 `,
    148,
  );
  return block;
}

const padding = (size: number): Uint8Array<ArrayBuffer> => new Uint8Array((BLOCK - (size % BLOCK)) % BLOCK);

async function* piecesOf(content: Blob): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const reader = content.stream().getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}
