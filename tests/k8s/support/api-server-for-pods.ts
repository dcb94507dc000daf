import { once } from 'node:events';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '@palestra/hosting';
import type { ControlPlane } from './control-plane.ts';

/** This machine on Podman's usual network, while a container runs there. The API server's certificate has this address. */
export const BRIDGE_ADDRESS = '10.88.0.1';

/** Where pods reach the API server, as `KUBERNETES_SERVICE_HOST` and `KUBERNETES_SERVICE_PORT` tell them. */
export interface ApiServerForPods {
  host: string;
  port: number;
  close(): Promise<void>;
}

/**
 * The API server listens on loopback, which pods do not reach. This stands in for the Service `kubernetes.default`: it passes bytes between
 * pods and the API server, from an address that only this machine and its containers reach.
 */
export async function serveApiServer(plane: ControlPlane): Promise<ApiServerForPods> {
  const port = await freePort();
  const { hostname, port: target } = new URL(plane.url);
  const open = new Set<Socket>();
  const server = createServer((pod) => {
    const upstream = createConnection(Number(target), hostname);
    pod.pipe(upstream).pipe(pod);
    pod.on('error', () => upstream.destroy()).on('close', () => upstream.destroy());
    upstream.on('error', () => pod.destroy()).on('close', () => pod.destroy());
    open.add(pod);
    pod.on('close', () => open.delete(pod));
  });
  let isClosed = false;
  // The address exists from the first container on.
  const listening = (async () => {
    while (!isClosed && !(await listens(server, port))) await sleep(100);
  })();
  return {
    host: BRIDGE_ADDRESS,
    port,
    close: async () => {
      isClosed = true;
      await listening;
      for (const pod of open) pod.destroy();
      if (server.listening) await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** False if the address does not exist yet. */
async function listens(server: Server, port: number): Promise<boolean> {
  server.listen(port, BRIDGE_ADDRESS);
  try {
    await once(server, 'listening');
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRNOTAVAIL') return false;
    throw error;
  }
}
