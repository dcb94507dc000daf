import { compress, decompress, init } from '@bokuweb/zstd-wasm';

/** The default level of zstd; the next levels cost much time and gain little. */
const LEVEL = 3;
/** The first bytes of a frame, `28 B5 2F FD` (RFC 8878, 3.1.1). */
const MAGIC = 0xfd2fb528;

export interface Zstd {
  /** Returns one frame with its content size in the header, as Parquet requires. */
  compress(bytes: Uint8Array): Uint8Array;
  /** Unpacks one frame. Throws if it is damaged or holds more than `maxBytes`; allocates no more than that. */
  decompress(frame: Uint8Array, maxBytes: number): Uint8Array;
}

let loaded: Promise<Zstd> | undefined;

/**
 * Zstandard as WebAssembly, because Node has its own only from 22.15 on and native packages need a compiler or a download. Load it only
 * here: a second `init` of the package replaces the memory under functions that are bound to the first.
 */
export function loadZstd(): Promise<Zstd> {
  loaded ??= init().then(() => ({ compress: compressFrame, decompress: decompressFrame }));
  return loaded;
}

function compressFrame(bytes: Uint8Array): Uint8Array {
  const frame = compress(bytes, LEVEL);
  if (!isFrame(frame)) throw new Error('zstd returned no frame.');
  return frame;
}

/** The package allocates what the header of a frame says, so the size is checked first. */
function decompressFrame(frame: Uint8Array, maxBytes: number): Uint8Array {
  if (!isFrame(frame)) throw new Error('Not a zstd frame.');
  const size = contentSize(frame);
  if (size !== null && size > maxBytes) throw new Error(`The zstd frame unpacks to ${size} bytes; the limit is ${maxBytes}.`);
  try {
    return decompress(frame, { defaultHeapSize: maxBytes });
  } catch (error) {
    throw new Error(`The zstd frame is damaged or unpacks to more than ${maxBytes} bytes.`, { cause: error });
  }
}

const isFrame = (bytes: Uint8Array): boolean => bytes.length > 6 && viewOf(bytes).getUint32(0, true) === MAGIC;
const viewOf = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** Reads Frame_Content_Size (RFC 8878, 3.1.1.1.4); null if the frame does not state it. */
function contentSize(frame: Uint8Array): number | null {
  const descriptor = frame[4]!;
  const isSingleSegment = (descriptor & 0x20) !== 0;
  const width = [isSingleSegment ? 1 : 0, 2, 4, 8][descriptor >> 6]!;
  if (width === 0) return null;
  const at = 5 + (isSingleSegment ? 0 : 1) + [0, 1, 2, 4][descriptor & 3]!;
  const view = viewOf(frame);
  if (frame.length < at + width) throw new Error('The zstd frame is truncated.');
  if (width === 1) return view.getUint8(at);
  if (width === 2) return view.getUint16(at, true) + 256;
  return width === 4 ? view.getUint32(at, true) : Number(view.getBigUint64(at, true));
}
