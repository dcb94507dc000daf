import { TextDecoder } from 'node:util';
import { type LogLine, MAX_LINE_CHARS } from '../../provider/provider.port.ts';

const HEADER = 8;
/** Larger than what any engine sends at once. */
const MOST_FRAME = 2 ** 24;
const MOST_STAMP = 64;
const STAMP = /^(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)) ?/;

interface Stream {
  name: LogLine['stream'];
  /** The unfinished line, at most `MAX_LINE_CHARS` and its time long. */
  text: string;
  /** The last bytes were not the end of a line. */
  isUnfinished: boolean;
  decoder: TextDecoder;
}

/**
 * Lines of a container's log with timestamps. The log alternates between two streams in frames: a header with the stream's number and the
 * length, then bytes. What is longer than `MAX_LINE_CHARS` is cut.
 */
export async function* logLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<LogLine> {
  const streams = { stdout: open('stdout'), stderr: open('stderr') };
  for await (const { stream, bytes } of frames(chunks)) yield* take(streams[stream], bytes);
  for (const stream of Object.values(streams)) if (stream.text !== '') yield* finish(stream);
}

const open = (name: LogLine['stream']): Stream => ({ name, text: '', isUnfinished: false, decoder: new TextDecoder() });

/** Bytes of the two streams of a container, in the order in which they come. */
export async function* frames(chunks: AsyncIterable<Buffer>): AsyncGenerator<{ stream: LogLine['stream']; bytes: Buffer }> {
  let held: Buffer[] = [];
  let size = 0;
  let needed = HEADER;
  for await (const chunk of chunks) {
    held.push(chunk);
    size += chunk.length;
    if (size < needed) continue;
    let rest = held.length === 1 ? chunk : Buffer.concat(held);
    while (rest.length >= HEADER) {
      const length = rest.readUInt32BE(4);
      if (rest[0]! > 2 || length > MOST_FRAME) throw new Error('the log of the container is not in frames');
      if (rest.length < HEADER + length) break;
      yield { stream: rest[0] === 2 ? 'stderr' : 'stdout', bytes: rest.subarray(HEADER, HEADER + length) };
      rest = rest.subarray(HEADER + length);
    }
    needed = rest.length < HEADER ? HEADER : HEADER + rest.readUInt32BE(4);
    held = rest.length === 0 ? [] : [rest];
    size = rest.length;
  }
}

function* take(stream: Stream, bytes: Buffer): Generator<LogLine> {
  // A line can come in several frames, each with its own time: Podman sends one for each write, Docker one for each 16 kB.
  const time = stream.isUnfinished ? STAMP.exec(bytes.toString('latin1', 0, MOST_STAMP)) : null;
  stream.isUnfinished = bytes.at(-1) !== 10;
  const pieces = stream.decoder.decode(bytes.subarray(time?.[0].length ?? 0), { stream: true }).split('\n');
  const last = pieces.pop()!;
  for (const piece of pieces) {
    append(stream, piece);
    yield* finish(stream);
  }
  append(stream, last);
}

function append(stream: Stream, text: string): void {
  const room = MAX_LINE_CHARS + MOST_STAMP - stream.text.length;
  if (room > 0) stream.text += text.slice(0, room);
}

function* finish(stream: Stream): Generator<LogLine> {
  const line = stream.text.replace(/\r$/, '');
  stream.text = '';
  const stamp = STAMP.exec(line);
  // A line without its time is the rest of one that the engine has split.
  const at = stamp ? new Date(stamp[1]!) : new Date();
  yield { at, stream: stream.name, text: line.slice(stamp?.[0].length ?? 0).slice(0, MAX_LINE_CHARS) };
}
