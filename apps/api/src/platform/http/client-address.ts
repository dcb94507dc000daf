import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';
import proxyAddr from '@fastify/proxy-addr';

/** Whether an address is one of the proxies: IP addresses, CIDRs, or `loopback`, `linklocal`, `uniquelocal`. Throws for anything else. */
export const compileProxies = (proxies: string[]): ((address: string) => boolean) => {
  const trust = proxyAddr.compile(proxies);
  return (address) => proxies.length > 0 && trust(address, 0);
};

/**
 * Where a request comes from. `X-Forwarded-For` counts only as far as trusted proxies wrote it: anybody can send the header.
 */
export class ClientAddresses {
  readonly isProxy: (address: string) => boolean;

  constructor(trustedProxies: string[]) {
    this.isProxy = compileProxies(trustedProxies);
  }

  /** The address of the client; the empty string when its connection is gone. */
  of(request: IncomingMessage): string {
    if (request.socket.remoteAddress === undefined) return '';
    return plain(proxyAddr(request, this.isProxy));
  }
}

const MAPPED = /^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i;
/** IPv4 addresses as such, also where they came over an IPv6 socket. */
const plain = (address: string): string => address.replace(MAPPED, '');

/** What one network client has: an IPv4 address, or the /64 of an IPv6 one, within which it takes any address it likes (RFC 4291 section 2.5.4). */
export function networkOf(address: string): string {
  const bare = plain(address.split('%', 1)[0]!);
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
