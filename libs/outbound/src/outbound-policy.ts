import { lookup as resolve, type LookupAddress } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { networkInterfaces } from 'node:os';
import { PalestraError } from '@palestra/protocol';
import { isLoopback, isSameAddress, isUnspecified, mayReach, type PrivateUpstreams } from './address-ranges.ts';

/** An address of the service's own database or object store. */
interface Endpoint {
  host: string;
  port: number;
}

const DEFAULT_PORTS: Record<string, number> = { 'http:': 80, 'https:': 443, 'postgres:': 5432, 'postgresql:': 5432 };

export const refusedAddress = (): PalestraError => new PalestraError('upstream_address_refused');

/**
 * Which addresses connections for tenants may reach. Addresses are checked when a connection opens, after name resolution, so that neither
 * another spelling nor a changed DNS record bypasses the check. Code that connects to a tenant's URL calls `check` for an address in the
 * URL, which Node.js does not resolve, and uses `lookup` for names; see `outboundAgent` and `openSocket`.
 */
export class OutboundPolicy {
  readonly #private: PrivateUpstreams | 'everything';
  readonly #ownEndpoints: Endpoint[] = [];
  #only: Endpoint | null = null;

  constructor(privateUpstreams: PrivateUpstreams | 'everything') {
    this.#private = privateUpstreams;
  }

  /** Allows only the host and port of this URL, for a server whose address the service itself assigned. */
  static only(url: string): OutboundPolicy {
    const policy = new OutboundPolicy('refused');
    policy.#only = endpointOf(url);
    return policy;
  }

  /** Refuses the service's database and object store, even if their address is allowed. */
  protect(url: string): void {
    if (!URL.canParse(url)) return;
    const endpoint = endpointOf(url);
    if (endpoint.host !== '') this.#ownEndpoints.push(endpoint);
  }

  /** `host`: of a URL. Throws `upstream_address_refused` for a forbidden address; `lookup` checks names. */
  async check(host: string, port: number): Promise<void> {
    const address = unbracketed(host);
    if (isIP(address) !== 0 && !(await this.#allows(address, port))) throw refusedAddress();
  }

  /** Also checks names. Does not refuse an unknown name. */
  async checkResolved(host: string, port: number): Promise<void> {
    await this.check(host, port);
    if (isIP(unbracketed(host)) !== 0) return;
    const error = await new Promise<Error | null>((done) => this.lookup(port)(host, { all: true }, done));
    if (error instanceof PalestraError) throw error;
  }

  /** The addresses of a host that may be reached. Throws `upstream_address_refused` if there are none, and the error of an unknown name. */
  async addresses(host: string, port: number): Promise<string[]> {
    await this.check(host, port);
    const address = unbracketed(host);
    if (isIP(address) !== 0) return [address];
    return new Promise((resolved, rejected) => {
      this.lookup(port)(address, { all: true }, (error, found) => {
        if (error === null) resolved((found as LookupAddress[]).map((one) => one.address));
        else rejected(error);
      });
    });
  }

  /** Like `dns.lookup`, with allowed addresses only. The error is `upstream_address_refused` if there are none. */
  lookup(port: number): LookupFunction {
    const answer = async (found: LookupAddress[], all: boolean, callback: Parameters<LookupFunction>[2]): Promise<void> => {
      let allowed: LookupAddress[];
      try {
        allowed = await this.#allowed(found, port);
      } catch (error) {
        return callback(error as Error, []);
      }
      const first = allowed[0];
      if (first === undefined) callback(refusedAddress(), []);
      else if (all) callback(null, allowed);
      else callback(null, first.address, first.family);
    };
    return (hostname, options, callback) => {
      resolve(hostname, { ...options, all: true }, (error, found) => {
        if (error === null) void answer(found, options.all === true, callback);
        else callback(error, []);
      });
    };
  }

  async #allowed(found: LookupAddress[], port: number): Promise<LookupAddress[]> {
    const allowed = await Promise.all(found.map(({ address }) => this.#allows(address, port)));
    return found.filter((_, index) => allowed[index]);
  }

  async #allows(address: string, port: number): Promise<boolean> {
    if (this.#private === 'everything') return true;
    if (this.#only !== null) {
      const { host, port: only } = this.#only;
      return port === only && (await addressesOf(host)).some((one) => isSameAddress(one, address));
    }
    return mayReach(address, this.#private) && !(await this.#isOwn(address, port));
  }

  async #isOwn(address: string, port: number): Promise<boolean> {
    for (const endpoint of this.#ownEndpoints) {
      if (endpoint.port !== port) continue;
      const addresses = await addressesOf(endpoint.host);
      if (addresses.some((one) => isSameAddress(one, address))) return true;
      if (isOfThisMachine(address) && addresses.some(isOfThisMachine)) return true;
    }
    return false;
  }
}

function endpointOf(url: string): Endpoint {
  const { hostname, port, protocol } = new URL(url);
  return { host: unbracketed(hostname), port: Number(port) || DEFAULT_PORTS[protocol] || 0 };
}

/** For servers that the user of this process chose, as in `palestra env validate`. */
export const unrestricted = new OutboundPolicy('everything');

/** Removes the brackets around an IPv6 address. */
export const unbracketed = (host: string): string => host.replace(/^\[|\]$/g, '');

async function addressesOf(host: string): Promise<string[]> {
  if (isIP(host) !== 0) return [host];
  return new Promise((done) => {
    resolve(host, { all: true }, (error, found) => done(error === null ? found.map(({ address }) => address) : []));
  });
}

function isOfThisMachine(address: string): boolean {
  if (isLoopback(address) || isUnspecified(address)) return true;
  return Object.values(networkInterfaces()).some((addresses) => addresses?.some((one) => isSameAddress(one.address, address)));
}
