/** Exchanges that are remembered: a copy that comes later than so many is not looked for. */
const REMEMBERED = 64;
const SAMPLED = 1_024;

/**
 * Which replies could be a second copy of an earlier one, and so are not to be believed before a fence has shown that none is missing. Such a one equals
 * a reply of the last exchanges. The same message over and over may well be answered the same each time: that is believed, because a copy would say
 * nothing else, until something changes; then one fence clears the whole series.
 */
export class DuplicateReplies {
  /** Prints of the last replies, in a ring. */
  readonly #replies = new Int32Array(REMEMBERED);
  #count = 0;
  #lastMessage = 0;
  #unverified = false;

  /** Whether `reply` is to be verified before it is taken for the one to `message`. */
  mayBeDuplicate(message: string, reply: string): boolean {
    const [asked, answered] = [print(message), print(reply)];
    const seen = this.#replies.subarray(0, Math.min(this.#count, REMEMBERED)).includes(answered);
    const again = seen && this.#lastMessage === asked && this.#replies[(this.#count - 1) % REMEMBERED] === answered;
    this.#replies[this.#count % REMEMBERED] = answered;
    this.#count += 1;
    this.#lastMessage = asked;
    if (!seen) return this.#unverified;
    this.#unverified ||= again;
    return !again;
  }

  verified(): void {
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
