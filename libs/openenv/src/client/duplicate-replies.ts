/** How many replies are remembered. Later duplicates are not detected. */
const REMEMBERED = 64;
const SAMPLED = 1_024;

/**
 * Detects replies that may be duplicates of an earlier reply, so that the caller verifies them with a fence. Such a reply equals one of the
 * last replies. The same reply to the same message is accepted without a fence, because a duplicate would say the same; the next different
 * exchange is verified instead.
 */
export class DuplicateReplies {
  /** Hashes of the last replies, as a ring buffer. */
  readonly #replies = new Int32Array(REMEMBERED);
  #count = 0;
  #lastMessage = 0;
  #unverified = false;

  /** Whether `reply` must be verified before it is accepted for `message`. */
  mayBeDuplicate(message: string, reply: string): boolean {
    const [messageHash, replyHash] = [hashOf(message), hashOf(reply)];
    const seen = this.#replies.subarray(0, Math.min(this.#count, REMEMBERED)).includes(replyHash);
    const again = seen && this.#lastMessage === messageHash && this.#replies[(this.#count - 1) % REMEMBERED] === replyHash;
    this.#replies[this.#count % REMEMBERED] = replyHash;
    this.#count += 1;
    this.#lastMessage = messageHash;
    if (!seen) return this.#unverified;
    this.#unverified ||= again;
    return !again;
  }

  verified(): void {
    this.#unverified = false;
  }
}

/** FNV-1a hash of a text, for long texts of both ends. A collision only costs a fence. */
function hashOf(text: string): number {
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
