/** Exchanges that are remembered: a copy that comes later than so many is not looked for. */
const REMEMBERED = 8;
const SAMPLED = 1_024;

interface Exchange {
  message: number;
  reply: number;
}

/**
 * Which replies could be a second copy of an earlier one, and so are not to be believed before a fence has shown that none is missing. Such a one equals
 * a reply of the last exchanges. The same message over and over may well be answered the same each time: that is believed, because a copy would say
 * nothing else, until something changes; then one fence clears the whole series.
 */
export class ReplyDoubts {
  readonly #last: Exchange[] = [];
  #unverified = false;

  /** Whether `reply` is to be verified before it is taken for the one to `message`. */
  raisedBy(message: string, reply: string): boolean {
    const now = { message: print(message), reply: print(reply) };
    const before = this.#last.at(-1);
    const seen = this.#last.some((exchange) => exchange.reply === now.reply);
    this.#last.push(now);
    if (this.#last.length > REMEMBERED) this.#last.shift();
    if (!seen) return this.#unverified;
    const again = before?.message === now.message && before.reply === now.reply;
    this.#unverified ||= again;
    return !again;
  }

  settled(): void {
    this.#unverified = false;
  }
}

/** Equal for equal texts; unequal ones of one print only cost a fence. FNV-1a over the text, of a long one over its two ends. */
function print(text: string): number {
  let hash = 0x81_1c_9d_c5 ^ text.length;
  const add = (from: number, to: number) => {
    for (let at = from; at < to; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01_00_01_93);
  };
  if (text.length <= 2 * SAMPLED) add(0, text.length);
  else {
    add(0, SAMPLED);
    add(text.length - SAMPLED, text.length);
  }
  return hash;
}
