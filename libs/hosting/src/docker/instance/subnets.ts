import { createHash } from 'node:crypto';

/** Addresses of one instance's network, which has only two members. */
export interface Subnet {
  cidr: string;
  server: string;
  gateway: string;
}

/**
 * Networks of instances are taken from here: reserved for benchmarks (RFC 2544), so neither a local network nor the Internet uses it. An engine
 * itself would choose larger networks and have only about thirty.
 */
const FIRST = 0xc6120000;
const PREFIX = 29;
const SIZE = 2 ** (32 - PREFIX);
const COUNT = 2 ** 17 / SIZE;

/** `count` networks to try in this order. The first depends on the id, so that instances seldom try the same. */
export function subnetsFor(id: string, count = 64): Subnet[] {
  const first = createHash('sha256').update(id).digest().readUInt32BE() % COUNT;
  return Array.from({ length: count }, (_, index) => subnetAt(FIRST + ((first + index) % COUNT) * SIZE));
}

/** The subnet of a CIDR of `subnetsFor`. */
export function parseSubnet(cidr: string): Subnet {
  const [address = ''] = cidr.split('/');
  return subnetAt(address.split('.').reduce((value, part) => value * 256 + Number(part), 0));
}

function subnetAt(start: number): Subnet {
  // Docker keeps the first address for itself, although it does not use it.
  return { cidr: `${dotted(start)}/${PREFIX}`, server: dotted(start + 2), gateway: dotted(start + 3) };
}

const dotted = (address: number): string => [24, 16, 8, 0].map((shift) => (address >>> shift) & 255).join('.');
