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
  /** 0 for any free port. */
  port?: number;
  /** Address of the link: `host:port` or the path of a unix socket. */
  link?: string | null;
}

export interface RunningServer {
  url: string;
  port: number;
  /** Address of the link for `LinkClient`. */
  link: string | null;
  /** New sessions use these environments; open ones keep theirs. Throws for environments that cannot be served. */
  replace(environments: Environment[]): void;
  /** Ends every session, then both servers. */
  close(): Promise<void>;
}

/** Serves environments as an ORS server. The first one is the default. */
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
    replace: (next) => environmentHost.replace(next),
    async close() {
      await environmentHost.close();
      await Promise.all([closed(http, () => http.closeAllConnections()), link && closed(link.server, () => link.endConnections())]);
    },
  };
}

export interface ServeAsChildOptions extends ServeOptions {
  exitWithParent?: boolean;
  /** Status text for operators in the ready line. */
  status?: string | null;
}

/**
 * Runs `serve` in a child process: prints `{"ready":true,"port":...,"link":...,"status":...}` to standard output when it listens, and ends on
 * SIGTERM or with its parent, whose end closes standard input.
 */
export async function serveAsChild(environments: Environment[], options: ServeAsChildOptions = {}): Promise<void> {
  const running = await serve(environments, options);
  const stop = () => void running.close().finally(() => process.exit(0));
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  // A write error after the end of the parent must not end this process before it has closed its sessions.
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

/** `server.close` waits for open connections, so they are ended; no session needs them any more. */
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
