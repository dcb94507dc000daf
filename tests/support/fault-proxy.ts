import { once } from 'node:events';
import net from 'node:net';
import type { AddressInfo } from 'node:net';
import { randomOf } from './random.ts';

export interface FaultProxyOptions {
  /** Ports of the replicas. Each new connection goes to the next one that accepts it. */
  targets: number[];
  seed?: number;
  /** Shares of connections, from 0 to 1. */
  cut?: number;
  stall?: number;
  /** A request of the connection is answered with 429, 502 or 503 and does not reach a replica. */
  refuse?: number;
  /** A response of the connection, which the replica believes delivered, is replaced by 502. */
  replace?: number;
  /** Share of requests to duplicate. */
  duplicate?: number;
  /** 0: any free port. */
  port?: number;
}

export interface FaultProxy {
  url: string;
  port: number;
  counts: { connections: number; cut: number; stalled: number; refused: number; replaced: number; duplicated: number };
  /** Stops causing faults. */
  calm(): void;
  close(): Promise<void>;
}

/** A stalled connection is cut after this time. */
const STALL_MS = 1_500;
/** How long a replica may write a response that is replaced. */
const REPLACED_MS = 2_000;
/** Faults happen after this many bytes of answers: within the first few requests of a connection. */
const STRIKE_WITHIN_BYTES = 3_000;
/** Requests that may be duplicated. A second `/create` may not, because the contract refuses it. */
const REPEATABLE = /^POST \/(ping|delete|delete_session) |^POST [^ ]*\/?call [^]*"task_id":/;

/** What the proxy answers in the place of a replica. */
const REFUSALS = ['429 Too Many Requests', '502 Bad Gateway', '503 Service Unavailable'];
const answerOf = (status: string): string =>
  `HTTP/1.1 ${status}\r\nContent-Type: text/html\r\nContent-Length: 4\r\nConnection: close\r\n\r\n<h1>`;
const isStart = (data: Buffer, ...beginnings: string[]): boolean =>
  beginnings.some((text) => data.subarray(0, text.length).toString('latin1') === text);

/** The fault of a connection, by a random number from 0 to 1. */
function faultAt(options: FaultProxyOptions, fate: number): 'cut' | 'stall' | 'refuse' | 'replace' | null {
  let end = 0;
  for (const kind of ['cut', 'stall', 'refuse', 'replace'] as const) {
    end += options[kind] ?? 0;
    if (fate < end) return kind;
  }
  return null;
}

/** A TCP proxy in front of several replicas, round robin, that cuts, stalls, refuses, replaces and duplicates. */
export async function startFaultProxy(options: FaultProxyOptions): Promise<FaultProxy> {
  const random = randomOf(options.seed ?? 1);
  const counts = { connections: 0, cut: 0, stalled: 0, refused: 0, replaced: 0, duplicated: 0 };
  const sockets = new Set<net.Socket>();
  let calm = false;
  let turn = 0;

  const keep = (socket: net.Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => {});
    return socket;
  };

  async function connect(): Promise<net.Socket | null> {
    for (let attempt = 0; attempt < options.targets.length * 2; attempt += 1) {
      const port = options.targets[turn++ % options.targets.length]!;
      const socket = net.connect(port, '127.0.0.1');
      const connected = await Promise.race([once(socket, 'connect').then(() => true), once(socket, 'error').then(() => false)]).catch(
        () => false,
      );
      if (connected) return keep(socket);
    }
    return null;
  }

  async function repeat(request: Buffer): Promise<void> {
    const socket = await connect();
    if (socket === null) return;
    counts.duplicated += 1;
    socket.write(request);
    socket.resume();
    setTimeout(() => socket.destroy(), 5_000).unref();
  }

  const server = net.createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    keep(client);
    client.pause();
    void serve(client);
  });

  async function serve(client: net.Socket): Promise<void> {
    counts.connections += 1;
    const upstream = await connect();
    if (upstream === null) return void client.resetAndDestroy();
    const [fate, strike, reset] = [random(), Math.floor(random() * STRIKE_WITHIN_BYTES), random() < 0.5];
    const fault = faultAt(options, fate);
    let answered = 0;
    const end = () => {
      if (reset) {
        client.resetAndDestroy();
        upstream.resetAndDestroy();
      } else {
        client.destroy();
        upstream.destroy();
      }
    };
    client.on('data', (data) => {
      if (client.writableEnded) return;
      if (!calm && fault === 'refuse' && answered >= strike && isStart(data, 'POST ', 'GET ', 'DELETE ')) {
        counts.refused += 1;
        return void client.end(answerOf(REFUSALS[counts.refused % REFUSALS.length]!));
      }
      upstream.write(data);
      if (!calm && random() < (options.duplicate ?? 0) && REPEATABLE.test(data.toString('latin1'))) void repeat(data);
    });
    upstream.on('data', (data) => {
      answered += data.length;
      if (fault === 'replace' && client.writableEnded) return;
      if (calm || answered < strike || fault === null || fault === 'refuse') return void client.write(data);
      if (client.destroyed) return;
      if (fault === 'replace') {
        if (!isStart(data, 'HTTP/1.1 ')) return void client.write(data);
        counts.replaced += 1;
        return void client.end(answerOf('502 Bad Gateway'));
      }
      if (fault === 'cut') {
        counts.cut += 1;
        // Part of the data may have passed.
        client.write(data.subarray(0, Math.max(0, data.length - (answered - strike))), end);
        return;
      }
      counts.stalled += 1;
      setTimeout(end, STALL_MS).unref();
    });
    client.on('end', () => upstream.end());
    upstream.on('end', () => client.end());
    client.on('close', () => {
      // The replica must believe that the client has read the response.
      if (fault === 'replace' && client.writableEnded) setTimeout(() => upstream.destroy(), REPLACED_MS).unref();
      else upstream.destroy();
    });
    upstream.on('close', () => client.destroy());
    client.resume();
  }

  server.listen(options.port ?? 0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    counts,
    calm: () => void (calm = true),
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
