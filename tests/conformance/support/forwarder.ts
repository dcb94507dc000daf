import { once } from 'node:events';
import { connect, createServer } from 'node:net';

export interface Forwarder {
  stop(): Promise<void>;
}

/**
 * Takes connections at `[::1]:port` and passes the bytes to 127.0.0.1. The suites say `localhost`, which is both, and they
 * start a server of their own on every address that is left free.
 */
export async function forwardIpv6(port: number): Promise<Forwarder | null> {
  const sockets = new Set<{ destroy(): void }>();
  const server = createServer((client) => {
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
  try {
    server.listen({ host: '::1', port, ipv6Only: true });
    await once(server, 'listening');
  } catch (error) {
    // A machine without IPv6 has no ::1 that a suite could take either.
    if (['EADDRNOTAVAIL', 'EAFNOSUPPORT'].includes((error as NodeJS.ErrnoException).code ?? '')) return null;
    throw error;
  }
  return {
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
