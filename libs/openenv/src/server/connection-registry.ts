import type { Caller, HostedEnvironment, SessionEngine } from '@palestra/session';
import type { ClientConnection } from './client-connection.ts';

const SWEEP_MS = 5_000;
/** How often the engine is pinged for a session with an open socket; at least three times per heartbeat timeout. */
const PING_MS = 60_000;

/** The connections of this process by id. One timer serves all. */
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

  /** Stops the timer. Sessions stay open for other processes. */
  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  /** Finds connections of the caller's organisation and this environment only. */
  find(id: string, caller: Caller, hosted: HostedEnvironment): ClientConnection | null {
    const connection = this.#connections.get(id);
    if (connection === undefined || connection.context.caller.orgId !== caller.orgId) return null;
    return connection.context.hosted.environmentId === hosted.environmentId ? connection : null;
  }

  /** Pings sessions with sockets, closes sockets whose session has ended, and ends idle connections. */
  sweep(): void {
    const now = Date.now();
    for (const connection of this.#connections.values()) {
      const { heartbeatTimeoutMs } = connection.context.hosted.policy;
      if (connection.attached === null) {
        if (!connection.isStarting && now - connection.lastUsedAt > heartbeatTimeoutMs + SWEEP_MS && !connection.isBusy) connection.end();
        continue;
      }
      if (now - connection.pingedAt < Math.min(PING_MS, heartbeatTimeoutMs / 3) || !connection.episode.isOpen || connection.isBusy)
        continue;
      connection.pingedAt = now;
      // A session that expired, was lost or was closed elsewhere closes its socket (docs/reference/openenv.md#idle-sessions).
      this.engine.ping(connection.context.caller, connection.episode.sid!).catch((error: unknown) => connection.onPingFailed(error));
    }
  }
}
