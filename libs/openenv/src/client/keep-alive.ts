import type { UpstreamSocket } from './socket.ts';

const PING_MS = 20_000;
/**
 * A server that says nothing for so long is gone. Much longer than a ping takes: a step that blocks the event loop of a Python server
 * keeps its pongs back, and some tunnels swallow pings.
 */
const SILENCE_MS = 300_000;

/** Pings every socket of a backend from one timer, so that proxies do not take a thinking model for a dead connection. */
export class KeepAlive {
  readonly #sockets = new Set<UpstreamSocket>();
  #timer: NodeJS.Timeout | null = null;

  constructor(readonly options: { pingMs?: number; silenceMs?: number } = {}) {}

  add(socket: UpstreamSocket): void {
    this.#sockets.add(socket);
    this.#timer ??= setInterval(() => this.#sweep(), this.options.pingMs ?? PING_MS).unref();
  }

  remove(socket: UpstreamSocket): void {
    this.#sockets.delete(socket);
    if (this.#sockets.size === 0) this.stop();
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  #sweep(): void {
    const oldest = Date.now() - (this.options.silenceMs ?? SILENCE_MS);
    for (const socket of this.#sockets) {
      if (!socket.isOpen) this.remove(socket);
      else if (socket.heardAt < oldest) socket.drop('it has said nothing for minutes, and answered no ping');
      else socket.ping();
    }
  }
}
