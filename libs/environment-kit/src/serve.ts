import type { Server as HttpServer } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import type { Environment } from './definition.ts';
import { EnvironmentHost, type HostOptions } from './host/environment-host.ts';
import { parseLinkAddress } from './link/address.ts';
import { createLinkServer } from './link/server.ts';
import { createOrsServer, type OrsServerOptions } from './ors/server.ts';

export interface ServeOptions extends HostOptions, OrsServerOptions {
  /** Default 127.0.0.1. */
  host?: string;
  /** 0 takes any free port. */
  port?: number;
  /** Also serve the link here: `host:port` or the path of a unix socket. */
  link?: string | null;
}

export interface RunningServer {
  url: string;
  port: number;
  /** Where the link listens, as `LinkClient` takes it. */
  link: string | null;
  /** Ends every session, then both servers. */
  close(): Promise<void>;
}

/** Serves environments as an ordinary ORS server. The first one is the default. */
export async function serve(environments: Environment[], options: ServeOptions = {}): Promise<RunningServer> {
  const environmentHost = new EnvironmentHost(environments, options);
  const http = createOrsServer(environmentHost, options);
  const link = options.link ? createLinkServer(environmentHost) : null;
  const { host = '127.0.0.1', port = 0 } = options;
  await listening(http, { host, port });
  if (link) await listening(link.server, parseLinkAddress(options.link!));
  const bound = (http.address() as AddressInfo).port;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    port: bound,
    link: link && linkAddress(link.server),
    async close() {
      await environmentHost.close();
      await Promise.all([closed(http, () => http.closeAllConnections()), link && closed(link.server, () => link.endConnections())]);
    },
  };
}

export interface ServeAsChildOptions extends ServeOptions {
  exitWithParent?: boolean;
  /** A line about this process for operators, part of the ready line. */
  status?: string | null;
}

/**
 * `serve` as the whole of a child process: says `{"ready":true,"port":...,"link":...,"status":...}` on standard output when it listens,
 * and ends with its parent, whose death closes our standard input, or on SIGTERM.
 */
export async function serveAsChild(environments: Environment[], options: ServeAsChildOptions = {}): Promise<void> {
  const running = await serve(environments, options);
  const stop = () => void running.close().finally(() => process.exit(0));
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  // A parent that died may leave us a pipe that nobody reads; that must not be what ends us half-way.
  process.stdout.on('error', () => {});
  if (options.exitWithParent) process.stdin.on('end', stop).on('error', stop).resume();
  process.stdout.write(`${JSON.stringify({ ready: true, port: running.port, link: running.link, status: options.status ?? null })}\n`);
}

function listening(server: Server | HttpServer, address: object): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(address, () => resolve());
  });
}

/** `server.close` waits for connections that nobody ends; by now no session needs them. */
function closed(server: Server | HttpServer, endConnections: () => void): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    endConnections();
  });
}

function linkAddress(server: Server): string {
  const address = server.address();
  return typeof address === 'string' ? address : `${address!.address}:${address!.port}`;
}
