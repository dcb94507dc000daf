import type { MessageSkeleton } from '@palestra/rollouts';
import { LRUCache } from 'lru-cache';
import type { RolloutHead } from './rollout.sql.ts';

/** A page requests a rollout's header and its outline together; the second request arrives within this time. */
const CACHE_MS = 2_000;
/** The skeletons of 10 000 messages take about 2 MB. */
const MAX_ROLLOUTS = 8;

/**
 * Reads the skeletons of a rollout's messages once for concurrent requests. The key holds the number of messages and the time of the last
 * event, both from the head that the caller has just read, so a rollout that grew is read again.
 */
export class SkeletonCache {
  readonly #reads = new LRUCache<string, Promise<MessageSkeleton[]>>({ max: MAX_ROLLOUTS, ttlAutopurge: true, perf: Date });

  constructor(private readonly read: (head: RolloutHead) => Promise<MessageSkeleton[]>) {}

  of(head: RolloutHead): Promise<readonly MessageSkeleton[]> {
    const version = `${head.seq}:${head.messages}:${head.last_at.getTime()}`;
    const cached = this.#reads.get(version);
    if (cached !== undefined) return cached;
    const reading = this.read(head);
    this.#reads.set(version, reading);
    reading.then(
      () => this.#reads.set(version, reading, { ttl: CACHE_MS }),
      () => this.#reads.delete(version),
    );
    return reading;
  }
}
