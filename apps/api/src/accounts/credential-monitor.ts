import type { IncomingHttpHeaders } from 'node:http';
import { Inject, Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Clock } from '@palestra/kit';
import { PalestraError } from '@palestra/protocol';
import { keyOf } from '../platform/http/credentials.ts';
import { Sockets } from '../platform/http/sockets.ts';
import { CLOCK } from '../platform/tokens.ts';
import { Authenticator } from './authenticator.ts';

/** The authenticator caches for 5 s, so a stream or socket ends within 10 s after its credential, on every replica. */
const CHECK_MS = 4_000;
/** Shorter requests end before a check matters, among them the one that revokes its own key. */
const LONG_REQUEST_MS = 2_000;

/**
 * Requests and sockets are authorised when they open. This ends those whose key was revoked or expired, whose browser signed out, or whose
 * user left the organisation to which the browser had switched.
 */
@Injectable()
export class CredentialMonitor implements OnModuleInit, OnApplicationShutdown {
  readonly #requests = new Map<FastifyRequest, { since: number; end: () => void }>();
  #timer: NodeJS.Timeout | null = null;

  constructor(
    private readonly sockets: Sockets,
    private readonly authenticator: Authenticator,
    private readonly adapterHost: HttpAdapterHost,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  onModuleInit(): void {
    this.adapterHost.httpAdapter.getInstance<FastifyInstance>().addHook('onRequest', async (request, reply) => {
      if (!this.#hasCredential(request.headers)) return;
      this.#requests.set(request, { since: this.clock.now(), end: () => reply.raw.destroy() });
      reply.raw.once('close', () => this.#requests.delete(request));
    });
    this.#timer = setInterval(() => void this.check(), CHECK_MS).unref();
  }

  onApplicationShutdown(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
  }

  /** Results are cached, so this queries the database once per credential. */
  async check(): Promise<void> {
    const before = this.clock.now() - LONG_REQUEST_MS;
    const long = [...this.#requests].filter(([, { since }]) => since < before);
    await Promise.all([
      ...long.map(async ([request, { end }]) => (await this.#refusalOf(request.headers, organisationOf(request))) !== null && end()),
      ...[...this.sockets.opened()].map(async ([socket, { headers, orgId }]) => {
        const refusal = await this.#refusalOf(headers, orgId);
        if (refusal !== null) socket.close(1008, refusal);
      }),
    ]);
  }

  /** Why the credential is no longer valid for the organisation; null while it is. `orgId` null: for any. */
  async #refusalOf(headers: IncomingHttpHeaders, orgId: string | null): Promise<string | null> {
    if (!this.#hasCredential(headers)) return null;
    try {
      const caller = await this.authenticator.authenticate({ headers, method: 'GET' });
      if (caller === null) return 'This browser was signed out.';
      return orgId === null || caller.orgId === orgId ? null : 'The user of this browser has left the organisation.';
    } catch (error) {
      // During a database outage the credential counts as valid.
      const isRefused = error instanceof PalestraError && (error.status === 401 || error.code === 'organisation_not_found');
      return isRefused ? error.message : null;
    }
  }

  #hasCredential(headers: IncomingHttpHeaders): boolean {
    return keyOf(headers) !== null || this.authenticator.sessionToken(headers) !== null;
  }
}

/** The organisation whose data the request gets by its credential; null for a share link, which needs none. */
const organisationOf = ({ caller, share }: FastifyRequest): string | null => (share === undefined ? (caller?.orgId ?? null) : null);
