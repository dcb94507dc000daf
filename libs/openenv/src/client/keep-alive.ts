import type { UpstreamSocket } from './socket.ts';

const PING_MS = 20_000;
/**
 * A server that sends nothing for this long is considered dead. Much longer than a ping: a step can block the event loop of a Python
 * server, and some tunnels swallow pings.
 */
const SILENCE_MS = 300_000;

/** Pings all sockets of a backend with one timer, so that proxies do not close a connection while the model computes. */
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
    const oldest = performance.now() - (this.options.silenceMs ?? SILENCE_MS);
    for (const socket of this.#sockets) {
      if (!socket.isOpen) this.remove(socket);
      else if (socket.heardAt < oldest) socket.drop('it sent nothing for minutes and answered no ping');
      else socket.ping();
    }
  }
}
