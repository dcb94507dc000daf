import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { Database } from '../platform/database/database.ts';
import { Sockets } from '../platform/http/sockets.ts';

/** A revoked key loses its open sockets within this time on every replica, and at once on the one that revokes it. */
const LOOK_MS = 10_000;

/** Sockets are authorised when they open, and live for days: those whose key is revoked meanwhile are closed. */
@Injectable()
export class KeyWatch implements OnModuleInit, OnApplicationShutdown {
  #timer: NodeJS.Timeout | null = null;

  constructor(
    private readonly database: Database,
    private readonly sockets: Sockets,
  ) {}

  onModuleInit(): void {
    // A database that is away says nothing about a key.
    this.#timer = setInterval(() => void this.look().catch(() => {}), LOOK_MS).unref();
  }

  onApplicationShutdown(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
  }

  /** One query for all sockets, none where no socket is open. */
  async look(): Promise<void> {
    const held = this.sockets.keyIds();
    if (held.size === 0) return;
    const good = await this.database.prisma.apiKey.findMany({ where: { id: { in: [...held] }, revokedAt: null }, select: { id: true } });
    for (const { id } of good) held.delete(id);
    this.sockets.closeOf(held);
  }
}
