import { compress, init } from '@bokuweb/zstd-wasm';

/** What Parquet columns are compressed by. */
export type Compress = (bytes: Uint8Array) => Uint8Array;

/** zstd's own default: half of the time goes elsewhere, and the next levels gain little. */
const LEVEL = 3;
/** `28 B5 2F FD`: how every frame begins (RFC 8878, 3.1.1). */
const MAGIC = 0xfd2fb528;
let loaded: Promise<Compress> | undefined;

/**
 * Zstandard as WebAssembly: Node has its own from 22.15 on only, and native packages want a compiler or a download. One frame a
 * call, with its size in the header, as Parquet asks for. Nobody else may call the package's `init`: a second one swaps the memory under
 * functions that are bound to the first, which is found here and not by the reader of a file.
 */
export function zstdCompressor(): Promise<Compress> {
  loaded ??= init().then(() => compressFrame);
  return loaded;
}

function compressFrame(bytes: Uint8Array): Uint8Array {
  const frame = compress(bytes, LEVEL);
  if (frame.length < 4 || new DataView(frame.buffer, frame.byteOffset).getUint32(0, true) !== MAGIC) {
    throw new Error('zstd made something that is no frame');
  }
  return frame;
}
