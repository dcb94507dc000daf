import { JsonBounds, PalestraError } from '@palestra/protocol';
import { ANSWER_LIMITS, AnswerBytes, answerTooLarge } from '@palestra/outbound';

const [LINE_FEED, CARRIAGE_RETURN] = [0x0a, 0x0d];
/** An MCP message is one line. The SDK's parser keeps all lines of an event. */
const MAX_LINES = 50_000;

/**
 * Passes an event stream on in whole lines, and limits the length of each event. The SDK's parser reads an incomplete line again with every
 * piece, so pieces of one byte would block it for hours.
 */
export class EventLines {
  #partial = new AnswerBytes(ANSWER_LIMITS.call);
  readonly #json = new JsonBounds();
  #eventBytes = 0;
  #eventLines = 0;
  #lineBytes = 0;
  #afterReturn = false;

  /** Returns the complete lines; null if there are none. Throws `answer_too_large`, `backend_invalid`. */
  push(piece: Buffer): Buffer | null {
    this.#count(piece);
    const end = Math.max(piece.lastIndexOf(LINE_FEED), piece.lastIndexOf(CARRIAGE_RETURN)) + 1;
    if (end === 0) {
      this.#partial.push(piece);
      return null;
    }
    const lines = Buffer.concat([this.#partial.bytes, piece.subarray(0, end)]);
    this.#partial = new AnswerBytes(ANSWER_LIMITS.call);
    this.#partial.push(piece.subarray(end));
    return lines;
  }

  #count(piece: Buffer): void {
    let start = 0;
    let feed = piece.indexOf(LINE_FEED);
    let back = piece.indexOf(CARRIAGE_RETURN);
    while (feed !== -1 || back !== -1) {
      const isFeed = back === -1 || (feed !== -1 && feed < back);
      const at = isFeed ? feed : back;
      this.#countPart(piece.subarray(start, at));
      // CRLF is one line end.
      const isSecond = isFeed && (at === 0 ? this.#afterReturn : piece[at - 1] === CARRIAGE_RETURN);
      if (!isSecond) this.#endLine();
      start = at + 1;
      if (isFeed) feed = piece.indexOf(LINE_FEED, start);
      else back = piece.indexOf(CARRIAGE_RETURN, start);
    }
    this.#countPart(piece.subarray(start));
    if (piece.length > 0) this.#afterReturn = piece.at(-1) === CARRIAGE_RETURN;
  }

  #countPart(part: Buffer): void {
    this.#lineBytes += part.length;
    this.#eventBytes += part.length;
    if (this.#eventBytes > ANSWER_LIMITS.call || this.#eventLines > MAX_LINES) throw answerTooLarge(ANSWER_LIMITS.call);
    const excess = this.#json.push(part);
    if (excess !== null) throw new PalestraError('backend_invalid', { detail: `The MCP server sent JSON that is ${excess}.` });
  }

  /** An empty line ends the event. JSON strings do not span lines. */
  #endLine(): void {
    this.#eventLines += 1;
    if (this.#lineBytes > 0) this.#json.endString();
    else {
      this.#json.reset();
      this.#eventBytes = 0;
      this.#eventLines = 0;
    }
    this.#lineBytes = 0;
  }
}
