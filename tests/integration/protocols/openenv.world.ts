import { once } from 'node:events';
import { WebSocket } from 'ws';

/** A client's socket: its frames in order and its close code. */
export class Client {
  readonly #frames: string[] = [];
  readonly #waiting: ((frame: string | null) => void)[] = [];
  closed: { code: number; reason: string } | null = null;

  private constructor(readonly socket: WebSocket) {
    socket.on('message', (data: Buffer) => this.#take(data.toString()));
    socket.on('close', (code, reason) => {
      this.closed = { code, reason: reason.toString() };
      for (const waiting of this.#waiting.splice(0)) waiting(null);
    });
    socket.on('error', () => {});
  }

  /** Rejects with the HTTP status of a refused upgrade. */
  static async open(url: string, headers: Record<string, string> = {}): Promise<Client> {
    const socket = new WebSocket(url.replace(/^http/, 'ws'), { headers, perMessageDeflate: false });
    const client = new Client(socket);
    await new Promise<void>((resolve, reject) => {
      socket.once('open', resolve);
      socket.once('unexpected-response', (_request, answer) => reject(new Error(`HTTP ${answer.statusCode}`)));
      socket.once('error', reject);
    });
    return client;
  }

  #take(frame: string): void {
    const waiting = this.#waiting.shift();
    if (waiting === undefined) this.#frames.push(frame);
    else waiting(frame);
  }

  /** The next frame; null if the socket closes or has closed. */
  async next(timeoutMs = 50_000): Promise<any> {
    const frame = this.#frames.shift() ?? (this.closed === null ? await this.#wait(timeoutMs) : null);
    return frame === null ? null : JSON.parse(frame);
  }

  #wait(timeoutMs: number): Promise<string | null> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no frame within ${timeoutMs} ms`)), timeoutMs);
      this.#waiting.push((frame) => {
        clearTimeout(timer);
        resolve(frame);
      });
    });
  }

  send(message: unknown): void {
    this.socket.send(typeof message === 'string' || Buffer.isBuffer(message) ? message : JSON.stringify(message));
  }

  async ask(message: unknown, timeoutMs?: number): Promise<any> {
    this.send(message);
    return this.next(timeoutMs);
  }

  /** The data of a reply; rejects for an error frame. */
  async get(message: { type: string; data?: unknown }): Promise<any> {
    const reply = await this.ask(message);
    if (reply?.type === 'error') throw new Error(`${reply.data.code}: ${reply.data.message}`);
    return reply?.data;
  }

  reset(data: Record<string, unknown> = {}): Promise<any> {
    return this.get({ type: 'reset', data });
  }

  call(tool: string, input: Record<string, unknown>): Promise<any> {
    return this.get({ type: 'step', data: { type: 'call_tool', tool_name: tool, arguments: input } });
  }

  step(action: Record<string, unknown>): Promise<any> {
    return this.get({ type: 'step', data: action });
  }

  state(): Promise<any> {
    return this.get({ type: 'state' });
  }

  async ended(): Promise<{ code: number; reason: string }> {
    if (this.closed === null) await once(this.socket, 'close');
    return this.closed!;
  }

  async close(): Promise<void> {
    if (this.closed !== null) return;
    this.socket.close(1000);
    await this.ended();
  }

  /** Closes without a close frame, like a client that dies. */
  destroy(): void {
    this.socket.terminate();
  }
}

/** Waits until `condition` holds. */
export async function until(condition: () => boolean | Promise<boolean>, timeoutMs = 40_000): Promise<void> {
  for (const deadline = Date.now() + timeoutMs; !(await condition());) {
    if (Date.now() > deadline) throw new Error('it did not come true');
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
