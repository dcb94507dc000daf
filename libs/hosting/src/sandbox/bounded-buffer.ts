const FIRST_BYTES = 4_096;

/** Bytes up to a limit, in one buffer that grows: the pieces of a hostile program may be one byte each. */
export class BoundedBuffer {
  /** Bytes came for which there was no room. */
  truncated = false;
  readonly #maxBytes: number;
  #buffer = Buffer.alloc(0);
  #size = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Copies what there is room for. */
  add(bytes: Buffer): void {
    const size = Math.min(this.#maxBytes, this.#size + bytes.length);
    if (bytes.length > this.#maxBytes - this.#size) this.truncated = true;
    if (size > this.#buffer.length) this.#grow(size);
    bytes.copy(this.#buffer, this.#size, 0, size - this.#size);
    this.#size = size;
  }

  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#size);
  }

  #grow(size: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.min(this.#maxBytes, Math.max(size, FIRST_BYTES, this.#buffer.length * 2)));
    this.#buffer.copy(larger, 0, 0, this.#size);
    this.#buffer = larger;
  }
}
