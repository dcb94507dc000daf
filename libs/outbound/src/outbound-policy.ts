import { lookup as resolve, type LookupAddress } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { networkInterfaces } from 'node:os';
import { PalestraError } from '@palestra/protocol';
import { isLoopback, isSameAddress, isUnspecified, mayReach, type PrivateUpstreams } from './address-ranges.ts';

/** A place where what this service is built on listens. */
interface Endpoint {
  host: string;
  port: number;
}

const DEFAULT_PORTS: Record<string, number> = { 'http:': 80, 'https:': 443, 'postgres:': 5432, 'postgresql:': 5432 };

export const refusedAddress = (): PalestraError => new PalestraError('upstream_address_refused');

/**
 * Where connections for tenants may go. Addresses are checked when a connection is opened, after the name was resolved, so neither another
 * spelling nor a name that changes its address gets around it. Whatever connects to a tenant's URL asks `check` for an address in the URL,
 * for which Node.js resolves nothing, and uses `lookup` for a name; see `outboundAgent` and `openSocket`.
 */
export class OutboundPolicy {
  readonly #private: PrivateUpstreams | 'everything';
  readonly #own: Endpoint[] = [];

  constructor(privateUpstreams: PrivateUpstreams | 'everything') {
    this.#private = privateUpstreams;
  }

  /** Refuses a URL at which the service's database or object store listens, even where its address is allowed. */
  protect(url: string): void {
    if (!URL.canParse(url)) return;
    const { hostname, port, protocol } = new URL(url);
    if (hostname !== '') this.#own.push({ host: unbracketed(hostname), port: Number(port) || DEFAULT_PORTS[protocol] || 0 });
  }

  /** `host`: of a URL. Throws `upstream_address_refused` for an address that is not allowed; a name is for `lookup`. */
  async check(host: string, port: number): Promise<void> {
    const address = unbracketed(host);
    if (isIP(address) !== 0 && !(await this.#allows(address, port))) throw refusedAddress();
  }

  /** Of a name too. A name that is not known is not refused. */
  async checkResolved(host: string, port: number): Promise<void> {
    await this.check(host, port);
    if (isIP(unbracketed(host)) !== 0) return;
    const error = await new Promise<Error | null>((done) => this.lookup(port)(host, { all: true }, done));
    if (error instanceof PalestraError) throw error;
  }

  /** As `dns.lookup`, with those addresses only that are allowed; the error is `upstream_address_refused` when none is. */
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
    return mayReach(address, this.#private) && !(await this.#isOwn(address, port));
  }

  async #isOwn(address: string, port: number): Promise<boolean> {
    for (const own of this.#own) {
      if (own.port !== port) continue;
      const addresses = await addressesOf(own.host);
      if (addresses.some((one) => isSameAddress(one, address))) return true;
      if (isOfThisMachine(address) && addresses.some(isOfThisMachine)) return true;
    }
    return false;
  }
}

/** For servers that whoever runs this process started or chose, as `palestra env validate` does. */
export const unrestricted = new OutboundPolicy('everything');

/** Without the brackets that a URL has around an IPv6 address. */
export const unbracketed = (host: string): string => host.replace(/^\[|\]$/g, '');

async function addressesOf(host: string): Promise<string[]> {
  if (isIP(host) !== 0) return [host];
  return new Promise((done) => {
    resolve(host, { all: true }, (error, found) => done(error === null ? found.map(({ address }) => address) : []));
  });
}

function isOfThisMachine(address: string): boolean {
  if (isLoopback(address) || isUnspecified(address)) return true;
  return Object.values(networkInterfaces()).some((own) => own?.some((one) => isSameAddress(one.address, address)));
}
