import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';

export interface CuttingProxy {
  port: number;
  /** Breaks all connections that are open now, by a reset, and says how many those were. */
  cut(): number;
  /** Takes no connections until the returned function is called. */
  refuse(): () => void;
  /** Connections go to this port from now on. */
  aim(port: number): void;
  close(): Promise<void>;
}

/** A TCP proxy that breaks connections when it is told to. */
export async function startCuttingProxy(target: number): Promise<CuttingProxy> {
  const clients = new Set<net.Socket>();
  let refusing = false;
  let aimed = target;
  const server = net.createServer((client) => {
    client.on('error', () => {});
    if (refusing) return void client.resetAndDestroy();
    const upstream = net.connect(aimed, '127.0.0.1').on('error', () => client.resetAndDestroy());
    clients.add(client);
    client.once('close', () => {
      clients.delete(client);
      upstream.destroy();
    });
    upstream.once('close', () => client.destroy());
    client.pipe(upstream).pipe(client);
  });
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
