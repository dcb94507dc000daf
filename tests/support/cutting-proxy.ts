import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';

export interface CuttingProxy {
  port: number;
  /** Resets all open connections and returns their number. */
  cut(): number;
  /** Number of open connections. */
  open(): number;
  /** Resets the next connection on arrival; `broken` then resolves. */
  breakNext(): { broken: Promise<void> };
  /** Accepts connections without forwarding until the returned function is called. */
  hold(): () => void;
  /** Refuses connections until the returned function is called. */
  refuse(): () => void;
  /** Forwards new connections to this port from now on. */
  aim(port: number): void;
  close(): Promise<void>;
}

/** A TCP proxy that breaks connections on request. */
export async function startCuttingProxy(target: number): Promise<CuttingProxy> {
  const clients = new Set<net.Socket>();
  let refusing = false;
  let breakOne: (() => void) | null = null;
  let held: Promise<void> | null = null;
  let aimed = target;
  const server = net.createServer((client) => {
    client.on('error', () => {});
    if (refusing) return void client.resetAndDestroy();
    if (breakOne !== null) {
      breakOne();
      breakOne = null;
      return void client.resetAndDestroy();
    }
    if (held === null) return connect(client);
    void held.then(() => client.destroyed || connect(client));
  });
  const connect = (client: net.Socket) => {
    const upstream = net.connect(aimed, '127.0.0.1').on('error', () => client.resetAndDestroy());
    clients.add(client);
    client.once('close', () => {
      clients.delete(client);
      upstream.destroy();
    });
    upstream.once('close', () => client.destroy());
    client.pipe(upstream).pipe(client);
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = () => {
    const { size } = clients;
    for (const client of clients) client.resetAndDestroy();
    return size;
  };
  return {
    port: (server.address() as AddressInfo).port,
    cut,
    open: () => clients.size,
    breakNext: () => ({ broken: new Promise((resolve) => (breakOne = resolve)) }),
    hold: () => {
      let pass = () => {};
      held = new Promise((resolve) => (pass = resolve));
      return () => {
        held = null;
        pass();
      };
    },
    refuse: () => {
      refusing = true;
      return () => void (refusing = false);
    },
    aim: (port) => void (aimed = port),
    close: async () => {
      cut();
      server.close();
    },
  };
}
