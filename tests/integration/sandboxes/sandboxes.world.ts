import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';

/** An address of this machine that gateways reach. */
export const machineAddress = (): string =>
  Object.values(networkInterfaces())
    .flat()
    .find((one) => one?.family === 'IPv4' && !one.internal)!.address;

/** A server that answers with the method and path of each request. Sandboxes reach it where `machineAddress` is a host of plain HTTP. */
export async function startEcho(): Promise<{ url: string; close: () => void }> {
  const server = http.createServer((request, response) => response.end(`${request.method} ${request.url}`)).listen(0, '0.0.0.0');
  await once(server, 'listening');
  return { url: `http://${machineAddress()}:${(server.address() as AddressInfo).port}`, close: () => server.close() };
}
