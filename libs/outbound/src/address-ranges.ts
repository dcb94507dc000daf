import ipaddr from 'ipaddr.js';

/**
 * Which non-public addresses tenants may reach: those of private networks and of this machine, none, or a list of CIDRs (an address without
 * prefix is one address).
 */
export type PrivateUpstreams = 'allowed' | 'refused' | readonly string[];

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** Allowed by `allowed`. Link-local, multicast, reserved and transition addresses need a CIDR that contains them. */
const PRIVATE = new Set<string>(['private', 'uniqueLocal', 'carrierGradeNat', 'loopback', 'unspecified']);
/** Metadata services of clouds, which issue credentials (AWS and others, ECS, EKS, Alibaba, Oracle, Azure, GCP). Never reachable. */
const METADATA = new Set(
  [
    '169.254.169.254',
    '169.254.170.2',
    '169.254.170.23',
    '100.100.100.200',
    '192.0.0.192',
    '168.63.129.16',
    'fd00:ec2::254',
    'fd00:ec2::23',
    'fd20:ce::254',
  ].map((address) => ipaddr.parse(address).toNormalizedString()),
);
const NAT64 = ipaddr.parseCIDR('64:ff9b::/96');
/** Addresses that are routed on the Internet. */
const GLOBAL_IPV6 = ipaddr.parseCIDR('2000::/3');

/** The IPv4 address in an IPv4-mapped or NAT64 address; null if the text is not an address. */
function parse(text: string): Address | null {
  if (!ipaddr.isValid(text)) return null;
  const address = ipaddr.process(text);
  if (address.kind() === 'ipv4' || !address.match(NAT64)) return address;
  return ipaddr.fromByteArray(address.toByteArray().slice(-4));
}

const matches = (address: Address, [network, bits]: [Address, number]): boolean =>
  address.kind() === network.kind() && address.match([network, bits]);

function isPublic(address: Address): boolean {
  return address.range() === 'unicast' && (address.kind() === 'ipv4' || matches(address, GLOBAL_IPV6));
}

/** Whether a tenant's URL may lead to this address. */
export function mayReach(text: string, privateUpstreams: PrivateUpstreams): boolean {
  const address = parse(text);
  if (address === null || METADATA.has(address.toNormalizedString())) return false;
  if (isPublic(address)) return true;
  if (privateUpstreams === 'refused') return false;
  if (privateUpstreams === 'allowed') return PRIVATE.has(address.range());
  return privateUpstreams.some((cidr) => matches(address, parseCidr(cidr)!));
}

/** Whether a text is a loopback address or its name. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || parse(host)?.range() === 'loopback';
}

/** `0.0.0.0` and `::` mean all addresses when listening, loopback when connecting. */
export const isUnspecified = (host: string): boolean => parse(host)?.range() === 'unspecified';

/** Whether two texts are the same address. */
export function isSameAddress(one: string, other: string): boolean {
  const [first, second] = [parse(one), parse(other)];
  return first !== null && second !== null && first.toNormalizedString() === second.toNormalizedString();
}

/** Parses `10.0.0.0/8` or an address; null for any other text. */
export function parseCidr(text: string): [Address, number] | null {
  if (ipaddr.isValidCIDR(text)) return ipaddr.parseCIDR(text);
  if (!ipaddr.isValid(text)) return null;
  const address = ipaddr.process(text);
  return [address, address.kind() === 'ipv4' ? 32 : 128];
}
