import { addAbortSignal, type Readable } from 'node:stream';
import { EngineError } from './engine-error.ts';

/** Lists of the engine are far smaller. What a container has changed may not be. */
const MAX_BYTES = 32 * 2 ** 20;
/** Status of the error; engines do not use it. */
export const TOO_LARGE = 413;

/**
 * The body of an answer: parsed, text if it is no JSON, null if there is none. The signal ends the reading. Rejects with an `EngineError` when the
 * body is larger than 32 MiB.
 */
export async function readAnswer(answer: Readable, signal: AbortSignal): Promise<unknown> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Leaving the loop destroys the answer.
  for await (const chunk of addAbortSignal(signal, answer) as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES) throw new EngineError(TOO_LARGE, `The answer of the engine is larger than ${MAX_BYTES / 2 ** 20} MiB.`);
    chunks.push(chunk);
  }
  if (bytes === 0) return null;
  const text = Buffer.concat(chunks).toString();
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
