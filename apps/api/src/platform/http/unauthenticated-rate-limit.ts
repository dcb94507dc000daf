import { createHmac, randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Inject, Injectable } from '@nestjs/common';
import { PalestraError } from '@palestra/protocol';
import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible';
import { type Config, CONFIG } from '../config.ts';
import { ClientAddresses, networkOf } from './client-address.ts';

/** Requests of load balancers, and of clients that wait for a server, are not counted: they reveal nothing and cost little. */
const PROBE = /^[^?]*\/health(?:\/(?:live|ready))?(?:\?|$)/;
/**
 * Number of counters, which bounds the memory. An address that shares a counter with an attacker loses only requests without a valid key.
 */
const COUNTER_BITS = 16;

interface Limiter {
  points: RateLimiterMemory;
  detail: string;
  /** A request counts once, also if it is checked several times. */
  counted: WeakMap<IncomingMessage, Promise<unknown>>;
}
const limiter = (perMinute: number, detail: string): Limiter => ({
  points: new RateLimiterMemory({ points: perMinute, duration: 60 }),
  detail,
  counted: new WeakMap(),
});

/**
 * Limits how often an address may fail to authenticate, and may send requests without a key, on this replica. It refuses only
 * unauthenticated requests: a valid key works from the address of an attacker.
 */
@Injectable()
export class UnauthenticatedRateLimit {
  readonly #failures: Limiter;
  readonly #requests: Limiter;
  /** Prevents an attacker from choosing whom it shares a counter with. */
  readonly #salt = randomBytes(16);
  readonly #addresses: ClientAddresses;

  constructor(@Inject(CONFIG) config: Config) {
    const { unauthenticatedLimits, trustedProxies } = config;
    this.#failures = limiter(
      unauthenticatedLimits.failures,
      'Too many wrong keys or links came from this address. Requests with a valid key still work.',
    );
    this.#requests = limiter(
      unauthenticatedLimits.requests,
      'Too many requests without an API key came from this address. Requests with a key still work.',
    );
    this.#addresses = new ClientAddresses(trustedProxies);
  }

  /** Counts a request with an invalid credential. Throws `rate_limited` above the limit of its address. */
  countFailure(request: IncomingMessage): Promise<void> {
    return this.#count(this.#failures, request);
  }

  /** Counts a request without a credential, except probes. Throws `rate_limited` above the limit of its address. */
  async countUnauthenticated(request: IncomingMessage): Promise<void> {
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
