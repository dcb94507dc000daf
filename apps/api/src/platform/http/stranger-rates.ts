import { createHmac, randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Inject, Injectable } from '@nestjs/common';
import { PalestraError } from '@palestra/protocol';
import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible';
import { type Config, CONFIG } from '../config.ts';
import { ClientAddresses, networkOf } from './client-address.ts';

/** Of load balancers, and of clients that wait for a server: what they are told costs nothing. */
const PROBE = /\/health(?:\/\w+)?(?:\?|$)/;
/** Addresses share so many counters: memory is bounded, however many addresses somebody has. Who shares one with an attacker is refused only what would fail anyway. */
const COUNTER_BITS = 16;

interface Limiter {
  points: RateLimiterMemory;
  detail: string;
  /** A request may be looked at more than once; each time it hears the same. */
  counted: WeakMap<IncomingMessage, Promise<unknown>>;
}
const limiter = (perMinute: number, detail: string): Limiter => ({
  points: new RateLimiterMemory({ points: perMinute, duration: 60 }),
  detail,
  counted: new WeakMap(),
});

/**
 * How often an address may fail to authenticate, and ask without a key, on this replica. Only what fails is refused: a valid key works behind
 * the same address as an attacker.
 */
@Injectable()
export class StrangerRates {
  readonly #failures: Limiter;
  readonly #requests: Limiter;
  /** So that nobody chooses whom to share a counter with. */
  readonly #salt = randomBytes(16);
  readonly #addresses: ClientAddresses;

  constructor(@Inject(CONFIG) config: Config) {
    const { strangers, trustedProxies } = config;
    this.#failures = limiter(strangers.failures, 'Too many wrong keys or links came from this address. A valid key works.');
    this.#requests = limiter(strangers.requests, 'Too many requests without an API key came from this address. With a key they work.');
    this.#addresses = new ClientAddresses(trustedProxies);
  }

  /** A request brought a credential that is not valid. Throws `rate_limited` when its address did so too often. */
  failed(request: IncomingMessage): Promise<void> {
    return this.#count(this.#failures, request);
  }

  /** A request brought no credential. Throws `rate_limited` when its address asked too often; never for a probe. */
  async unauthenticated(request: IncomingMessage): Promise<void> {
    if (!PROBE.test(request.url ?? '')) await this.#count(this.#requests, request);
  }

  async #count({ points, detail, counted }: Limiter, request: IncomingMessage): Promise<void> {
    let consumed = counted.get(request);
    if (consumed === undefined) {
      const digest = createHmac('sha256', this.#salt)
        .update(networkOf(this.#addresses.of(request)))
        .digest();
      consumed = points.consume(digest.readUIntBE(0, COUNTER_BITS / 8));
      counted.set(request, consumed);
    }
    try {
      await consumed;
    } catch (refusal) {
      const retryAfterSeconds = Math.ceil((refusal as RateLimiterRes).msBeforeNext / 1_000);
      throw new PalestraError('rate_limited', { detail, retryAfterSeconds });
    }
  }
}
