import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface TcpForwarder {
  url: string;
  /** Connections that were ever made. */
  connections(): number;
  /** Every open connection breaks, on both sides; new ones are taken. */
  cut(): void;
  /** Breaks every connection, and takes no more. */
  stop(): Promise<void>;
}

/** A wire between us and a server on this machine, to be cut. `listenPort` 0 takes any free port. */
export async function startTcpForwarder(port: number, listenPort = 0): Promise<TcpForwarder> {
  const sockets = new Set<Socket>();
  let count = 0;
  const server = createServer((client) => {
    count += 1;
    const target = connect({ host: '127.0.0.1', port });
    for (const socket of [client, target]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        target.destroy();
      });
    }
    client.pipe(target);
    target.pipe(client);
  });
  server.listen(listenPort, '127.0.0.1');
  await once(server, 'listening');
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    connections: () => count,
    cut,
    stop: async () => {
      server.close();
      cut();
      await once(server, 'close');
    },
  };
}
