import { createParser } from 'eventsource-parser';

/**
 * Server-sent events of the Open Reward Standard (docs/reference/ors.md#event-streams): CRLF lines, the events `task_id`, `chunk`, `end`
 * and `error`, comments as heartbeats, and results in pieces of at most 4096 characters.
 */

/** Extension of the standard: the id of a `/call`, which runs once per id. The environment kit supports it. */
export const CALL_ID_HEADER = 'x-palestra-call-id';
export const SSE_HEADERS = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-cache',
  Connection: 'keep-alive',
  'X-Accel-Buffering': 'no',
} as const;

/** Longest payload of a `chunk` or `end`, in UTF-16 units. */
export const SSE_PIECE_LENGTH = 4096;

/** Comments keep the stream open: clients have a read timeout of 30 s. */
export const SSE_HEARTBEAT_MS = 10_000;

/** Clients accept lines up to 512 KiB, and an error is one line, so a longer message loses its middle. */
const ERROR_TEXT_LENGTH = 65_536;

export function cutErrorText(text: string): string {
  if (text.length <= ERROR_TEXT_LENGTH) return text;
  const half = ERROR_TEXT_LENGTH / 2;
  return `${text.slice(0, half).toWellFormed()}\n[${text.length - 2 * half} characters left out]\n${text.slice(-half).toWellFormed()}`;
}

/** One event. `data` may contain newlines, which give several `data:` lines. */
export function encodeSseEvent(event: string, data: string): string {
  if (!/[\r\n]/.test(data)) return `event: ${event}\r\ndata: ${data}\r\n\r\n`;
  const lines = data.split(/\r\n|\r|\n/).map((line) => `data: ${line}\r\n`);
  return `event: ${event}\r\n${lines.join('')}\r\n`;
}

export function encodeSseHeartbeat(now: Date): string {
  return `: ping - ${now.toISOString()}\r\n\r\n`;
}

/** The `chunk` events and the `end` event of a JSON document. */
export function encodeSseResult(json: string): string {
  if (json.length <= SSE_PIECE_LENGTH && !/^\s|[\r\n]/.test(json)) return `event: end\r\ndata: ${json}\r\n\r\n`;
  const pieces = splitJsonForSse(json);
  const last = pieces.pop() ?? '';
  return pieces.map((piece) => encodeSseEvent('chunk', piece)).join('') + encodeSseEvent('end', last);
}

/**
 * Clients strip ALL leading Unicode white space of a `data:` value (Python's `str.lstrip`, a larger set than JavaScript's `\s`), so no
 * piece may start with one of these characters.
 */
function isStripped(code: number): boolean {
  if (code > 0x20 && code < 0x85) return false;
  return (
    (code >= 0x09 && code <= 0x0d) ||
    (code >= 0x1c && code <= 0x20) ||
    code === 0x85 ||
    code === 0xa0 ||
    code === 0x1680 ||
    (code >= 0x2000 && code <= 0x200a) ||
    code === 0x2028 ||
    code === 0x2029 ||
    code === 0x202f ||
    code === 0x205f ||
    code === 0x3000
  );
}

const isLowSurrogate = (code: number) => code >= 0xdc00 && code <= 0xdfff;

/** Whether a position of a JSON text is inside a string. Ask for positions in ascending order. */
class JsonStringTracker {
  readonly #json: string;
  #at = 0;
  #inString = false;

  constructor(json: string) {
    this.#json = json;
  }

  isInString(position: number): boolean {
    for (; this.#at < position; this.#at += 1) {
      const code = this.#json.charCodeAt(this.#at);
      if (code === 0x22) this.#inString = !this.#inString;
      else if (code === 0x5c && this.#inString) this.#at += 1;
    }
    return this.#inString;
  }
}

/**
 * Splits a JSON text into pieces that the clients' parser preserves: none starts with white space, splits a surrogate pair or contains a
 * line break. Joined, they parse to the same value. A border inside a long run of white space cannot move, so the character after it is
 * written as `\uXXXX` (inside a string) or dropped (between tokens).
 */
export function splitJsonForSse(document: string): string[] {
  // A raw line break is only valid between tokens, where a space is equivalent.
  const json = (/[\r\n]/.test(document) ? document.replaceAll(/[\r\n]/g, ' ') : document).trim();
  const strings = new JsonStringTracker(json);
  const pieces: string[] = [];
  let start = 0;
  let escaped = '';
  while (json.length - start > SSE_PIECE_LENGTH - escaped.length) {
    const furthest = start + SSE_PIECE_LENGTH - escaped.length;
    let border = furthest;
    while (border > start && (isStripped(json.charCodeAt(border)) || isLowSurrogate(json.charCodeAt(border)))) border -= 1;
    if (border > start) {
      pieces.push(escaped + json.slice(start, border));
      escaped = '';
      start = border;
      continue;
    }
    pieces.push(escaped + json.slice(start, furthest));
    escaped = strings.isInString(furthest) ? `\\u${json.charCodeAt(furthest).toString(16).padStart(4, '0')}` : '';
    start = furthest + 1;
    if (escaped === '') while (isStripped(json.charCodeAt(start))) start += 1;
  }
  pieces.push(escaped + json.slice(start));
  return pieces;
}

export interface SseEvent {
  /** `message` if the stream has no name. */
  event: string;
  data: string;
}

/**
 * Parses an event stream incrementally by the WHATWG standard. Line ends become LF first: the package scans a text that has a CR once per
 * line, and keeps an event that ends with CR until more text arrives.
 */
export class SseParser {
  readonly #decoder = new TextDecoder('utf-8');
  readonly #parser = createParser({ onEvent: ({ event = 'message', data }) => void this.#events.push({ event, data }) });
  #events: SseEvent[] = [];
  #endsWithReturn = false;

  /** Returns the events that are complete with this piece. */
  push(piece: Uint8Array | string): SseEvent[] {
    const text = typeof piece === 'string' ? piece : this.#decoder.decode(piece, { stream: true });
    if (text === '') return [];
    const rest = this.#endsWithReturn && text.startsWith('\n') ? text.slice(1) : text;
    this.#endsWithReturn = text.endsWith('\r');
    this.#parser.feed(rest.includes('\r') ? rest.replaceAll(/\r\n?/g, '\n') : rest);
    const events = this.#events;
    this.#events = [];
    return events;
  }
}
