import type { Readable } from 'node:stream';

/** Longer lines are cut: an engine's own are short, those of a build are not. */
const MOST_CHARS = 2 ** 20;

/** Lines of text, without their ends. */
export async function* readLines(stream: Readable): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    const pieces = (rest + decoder.decode(chunk, { stream: true })).split(/\r?\n/);
    rest = pieces.pop()!.slice(0, MOST_CHARS);
    yield* pieces;
  }
  if (rest !== '') yield rest;
}
