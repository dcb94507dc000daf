import { compress, init } from '@bokuweb/zstd-wasm';

/** What Parquet columns are compressed by. */
export type Compress = (bytes: Uint8Array) => Uint8Array;

/** zstd's own default: half of the time goes elsewhere, and the next levels gain little. */
const LEVEL = 3;
let loaded: Promise<Compress> | undefined;

/**
 * Zstandard as WebAssembly: Node has its own from 22.15 on only, and native packages want a compiler or a download. One frame a
 * call, with its size in the header, as Parquet asks for.
 */
export function zstdCompressor(): Promise<Compress> {
  loaded ??= init().then(() => (bytes) => compress(bytes, LEVEL));
  return loaded;
}
