import type { Readable } from 'node:stream';
import { JsonBounds, PalestraError, parseJson } from '@palestra/protocol';

const MIB = 1024 * 1024;

/**
 * Limits of responses of environment servers, in bytes after decompression (also in docs/operations.md). The service briefly needs about
 * six times the size of a response to read, store and forward it.
 */
export const ANSWER_LIMITS = {
  /** Tool results, prompts, lists of tasks, one frame of a socket, one event of an MCP stream; all events of an ORS stream together. */
  call: 32 * MIB,
  /** Environments, splits, tools and schemas. */
  metadata: 16 * MIB,
} as const;

const EMPTY = Buffer.alloc(0);
const FIRST_BYTES = 64 * 1024;

export function answerTooLarge(limitBytes: number, cause?: unknown): PalestraError {
  const detail = `The response of the environment server is larger than ${limitBytes / MIB} MiB, the maximum that this service reads. Send less at once.`;
  return new PalestraError('answer_too_large', { detail, cause });
}

/** Collects a response in one buffer. Copies small pieces, because each would need more memory as an object. */
export class AnswerBytes {
  #buffer: Buffer = EMPTY;
  #length = 0;

  constructor(readonly limitBytes: number) {}

  /** Throws `answer_too_large`. */
  push(piece: Uint8Array): void {
    const length = this.#length + piece.length;
    if (length > this.limitBytes) throw answerTooLarge(this.limitBytes);
    // Most responses are one piece.
    if (this.#length === 0) {
      this.#buffer = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
      this.#length = length;
      return;
    }
    if (length > this.#buffer.length) {
      const larger = Buffer.allocUnsafeSlow(Math.min(Math.max(2 * length, FIRST_BYTES), this.limitBytes));
      this.#buffer.copy(larger, 0, 0, this.#length);
      this.#buffer = larger;
    }
    this.#buffer.set(piece, this.#length);
    this.#length = length;
  }

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }
}

/** Reads a body. Closes the connection on `answer_too_large`. Rejects with the body's error if it breaks. */
export async function readAnswer(body: Readable, limitBytes: number): Promise<Buffer> {
  const answer = new AnswerBytes(limitBytes);
  // Leaving the loop destroys the body.
  for await (const piece of body as AsyncIterable<Uint8Array>) answer.push(piece);
  return answer.bytes;
}

/** Decodes UTF-8 without a byte order mark. */
export function textOf(bytes: Buffer): string {
  const marked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  return bytes.toString('utf8', marked ? 3 : 0);
}

/** Throws `backend_invalid` for JSON that is too deep or has too many values to be parsed on the event loop. */
export function assertParsable(text: Buffer | string): void {
  const excess = new JsonBounds().push(typeof text === 'string' ? Buffer.from(text) : text);
  if (excess !== null) throw new PalestraError('backend_invalid', { detail: `The environment server sent JSON that is ${excess}.` });
}

/** FastAPI's `detail` in the body of an error; null in any other body, which is not passed on. */
export function detailIn(text: string): string | object[] | null {
  try {
    const body = parseJson(text);
    if (typeof body !== 'object' || body === null || !('detail' in body)) return null;
    if (typeof body.detail === 'string' || Array.isArray(body.detail)) return body.detail as string | object[];
    return JSON.stringify(body.detail);
  } catch {
    return null;
  }
}
