import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';
import proxyAddr from '@fastify/proxy-addr';

/**
 * Returns a predicate for the addresses of proxies: IP addresses, CIDRs, or `loopback`, `linklocal`, `uniquelocal`. Throws for anything
 * else.
 */
export const compileProxies = (proxies: string[]): ((address: string) => boolean) => {
  const trust = proxyAddr.compile(proxies);
  return (address) => proxies.length > 0 && trust(address, 0);
};

/**
 * The client address of a request. `X-Forwarded-For` counts only as far as trusted proxies wrote it, because any client can send the
 * header.
 */
export class ClientAddresses {
  readonly isProxy: (address: string) => boolean;

  constructor(trustedProxies: string[]) {
    this.isProxy = compileProxies(trustedProxies);
  }

  /** The empty string when the connection is closed. */
  of(request: IncomingMessage): string {
    if (request.socket.remoteAddress === undefined) return '';
    return unmapped(proxyAddr(request, this.isProxy));
  }
}

const MAPPED = /^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i;
/** Removes the IPv6 prefix of a mapped IPv4 address. */
const unmapped = (address: string): string => address.replace(MAPPED, '');

/**
 * The network of a client: an IPv4 address, or the /64 of an IPv6 address, in which a client can choose any address (RFC 4291 section
 * 2.5.4).
 */
export function networkOf(address: string): string {
  const bare = unmapped(address.split('%', 1)[0]!);
  if (!isIPv6(bare)) return bare;
  const [head = '', tail] = bare.toLowerCase().split('::', 2);
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const groups =
    tail === undefined ? left : [...left, ...Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => '0'), ...right];
  return groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':');
}
