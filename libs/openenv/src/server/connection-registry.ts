import type { Caller, HostedEnvironment, SessionEngine } from '@palestra/session';
import type { ClientConnection } from './client-connection.ts';

const SWEEP_MS = 5_000;
/** Sessions with an open socket are known to be wanted; the engine hears so this often, or thrice within their heartbeat timeout. */
const PING_MS = 60_000;

/** Every client of this process, by the id that it may be asked for by. One timer for all. */
export class ConnectionRegistry {
  readonly #connections = new Map<string, ClientConnection>();
  #timer: NodeJS.Timeout | null = null;

  constructor(readonly engine: SessionEngine) {}

  get size(): number {
    return this.#connections.size;
  }

  add(connection: ClientConnection): void {
    this.#connections.set(connection.id, connection);
    this.#timer ??= setInterval(() => this.sweep(), SWEEP_MS).unref();
  }

  delete(connection: ClientConnection): void {
    if (this.#connections.get(connection.id) === connection) this.#connections.delete(connection.id);
    if (this.#connections.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  /** Leaves the sessions to whoever goes on with them. */
  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  /** Of the caller's organisation and of this environment only. */
  find(id: string, caller: Caller, hosted: HostedEnvironment): ClientConnection | null {
    const connection = this.#connections.get(id);
    if (connection === undefined || connection.context.caller.orgId !== caller.orgId) return null;
    return connection.context.hosted.environmentId === hosted.environmentId ? connection : null;
  }

  /** Keeps sessions with sockets alive, closes sockets whose session has ended, forgets who has been silent for too long. */
  sweep(): void {
    const now = Date.now();
    for (const connection of this.#connections.values()) {
      const { heartbeatTimeoutMs } = connection.context.hosted.policy;
      if (connection.attached === null) {
        if (!connection.starting && now - connection.lastUsedAt > heartbeatTimeoutMs + SWEEP_MS && !connection.isBusy) connection.end();
        continue;
      }
      if (now - connection.pingedAt < Math.min(PING_MS, heartbeatTimeoutMs / 3) || !connection.episode.isOpen || connection.isBusy)
        continue;
      connection.pingedAt = now;
      // Expired, lost, or closed by somebody else: its socket goes, too (openenv-wire.md section 9).
      this.engine.ping(connection.context.caller, connection.episode.sid!).catch((error: unknown) => connection.lost(error));
    }
  }
}
