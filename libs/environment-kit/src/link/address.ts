import type { ListenOptions, NetConnectOpts } from 'node:net';

/** `host:port`, or the path of a unix socket. */
export function parseLinkAddress(link: string): NetConnectOpts & ListenOptions {
  const port = /^([^/\\]*):(\d+)$/.exec(link);
  return port ? { host: port[1] || '127.0.0.1', port: Number(port[2]) } : { path: link };
}
