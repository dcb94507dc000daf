import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { Database } from '../platform/database/database.ts';
import { Sockets } from '../platform/http/sockets.ts';
import { Authenticator } from './authenticator.ts';

/** A revoked key, and a browser that was signed out, lose their open sockets within this time on every replica, and at once on the one that was told. */
const LOOK_MS = 10_000;

/** Sockets are authorised when they open, and live for days: those whose key or cookie is good for nothing any more are closed. */
@Injectable()
export class SocketWatch implements OnModuleInit, OnApplicationShutdown {
  #timer: NodeJS.Timeout | null = null;

  constructor(
    private readonly database: Database,
    private readonly sockets: Sockets,
    private readonly authenticator: Authenticator,
  ) {}

  onModuleInit(): void {
    // A database that is away says nothing about a key.
    this.#timer = setInterval(() => void this.look().catch(() => {}), LOOK_MS).unref();
  }

  onApplicationShutdown(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
  }

  async look(): Promise<void> {
    await Promise.all([this.#lookAtKeys(), this.#lookAtBrowsers()]);
  }

  /** One query for all sockets, none where no socket is open. */
  async #lookAtKeys(): Promise<void> {
    const held = this.sockets.keyIds();
    if (held.size === 0) return;
    const good = await this.database.prisma.apiKey.findMany({ where: { id: { in: [...held] }, revokedAt: null }, select: { id: true } });
    for (const { id } of good) held.delete(id);
    this.sockets.closeOf(held);
  }

  async #lookAtBrowsers(): Promise<void> {
    await Promise.all(
      [...this.sockets.browsers()].map(async ([socket, headers]) => {
        const caller = await this.authenticator.authenticate({ headers, method: 'POST' });
        if (caller === null) socket.close(1008, 'This browser was signed out.');
      }),
    );
  }
}
