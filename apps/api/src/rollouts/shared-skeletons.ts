import type { MessageSkeleton } from '@palestra/rollouts';
import type { RolloutHead } from './rollout.sql.ts';

/** A page asks for a rollout's header and its outline at once; the later one comes within this time. */
const HELD_MS = 2_000;
/** Of 10 000 messages they are about 2 MB. */
const MOST_ROLLOUTS = 8;

/**
 * Skeletons of a rollout's messages, read once for whoever asks at the same moment. The head, which is read first, counts the messages: with
 * another number, or a later event, they are read anew.
 */
export class SharedSkeletons {
  readonly #reads = new Map<string, Promise<MessageSkeleton[]>>();

  constructor(private readonly read: (head: RolloutHead) => Promise<MessageSkeleton[]>) {}

  of(head: RolloutHead): Promise<readonly MessageSkeleton[]> {
    const version = `${head.seq}:${head.messages}:${head.last_at.getTime()}`;
    const known = this.#reads.get(version);
    if (known !== undefined) return known;
    const reading = this.read(head);
    this.#reads.set(version, reading);
    const forget = () => {
      if (this.#reads.get(version) === reading) this.#reads.delete(version);
    };
    reading.then(() => setTimeout(forget, HELD_MS).unref(), forget);
    const [oldest] = this.#reads.keys();
    if (this.#reads.size > MOST_ROLLOUTS && oldest !== undefined) this.#reads.delete(oldest);
    return reading;
  }
}
