import { PalestraError } from '@palestra/protocol';
import type { Caller, EnvironmentDirectory, HostedEnvironment, SessionEngine } from '@palestra/session';

/** What a request on the session plane says about the environment that it means. */
export interface OrsAddress {
  caller: Caller;
  /** What `X-Session-ID` stands for (`SessionEngine.sidOf`). */
  sid: string | null;
  /** `X-Session-ID` as sent, trimmed, which answers repeat; absent: as `sid`. */
  clientSid?: string | null;
  /** `X-Deployment` */
  deployment: string | null;
  /** First segment of `/{owner}/{name}/...`, our extension for clients that send no deployment header. */
  owner: string | null;
  /** Path segment before the operation, as sent: a variant, or with an owner the environment's name. null = bare path. */
  segment: string | null;
}

export interface ResolvedAddress {
  hosted: HostedEnvironment;
  /** Lower case; null = the default variant. */
  variant: string | null;
  /** What answers call it: the segment as sent, on bare paths the default variant's name. */
  envName: string;
}

const VARIANTS_TTL_MS = 5_000;

/** Finds the environment and variant of a request: by session, deployment header, path, or fallback (openreward-wire.md 2.6). */
export class OrsAddressResolver {
  readonly #variants = new WeakMap<HostedEnvironment['backend'], { names: string[]; until: number }>();

  constructor(
    readonly engine: SessionEngine,
    readonly directory: EnvironmentDirectory,
  ) {}

  async of(address: OrsAddress, signal: AbortSignal): Promise<ResolvedAddress> {
    if (address.owner !== null) {
      const hosted = await this.directory.resolve(`${address.owner}/${address.segment ?? ''}`, address.caller);
      return { hosted, variant: null, envName: (await this.variants(hosted, signal))[0] ?? hosted.name };
    }
    const hosted = await this.#byHeaders(address);
    if (address.segment === null) {
      if (hosted === null) throw new PalestraError('deployment_not_found');
      return { hosted, variant: null, envName: (await this.variants(hosted, signal))[0] ?? hosted.name };
    }
    const variant = hosted === null ? undefined : await this.variantOf(hosted, address.segment, signal);
    if (hosted !== null && variant !== undefined) return { hosted, variant, envName: address.segment };
    const named = address.deployment === null ? await this.byName(address.segment, address.caller) : null;
    if (named !== null) return { hosted: named, variant: null, envName: address.segment };
    throw unknownEnvironment(address.segment);
  }

  /** The session's environment, else the header's, else the fallback; null when there is none of them. */
  async #byHeaders({ caller, sid, deployment }: OrsAddress): Promise<HostedEnvironment | null> {
    const pinned = sid === null ? null : await this.engine.environmentOf(caller, sid);
    if (pinned !== null) return pinned;
    return deployment === null ? nullIfUnknown(this.directory.resolve(null, caller)) : this.directory.resolve(deployment, caller);
  }

  /** An environment by its bare name. The fallback deployment does not count as one. */
  async byName(name: string, caller: Caller): Promise<HostedEnvironment | null> {
    const hosted = await nullIfUnknown(this.directory.resolve(name, caller));
    return hosted?.name.toLowerCase() === name.toLowerCase() ? hosted : null;
  }

  /** `undefined` when the environment has no such variant; its own short name means the default one. */
  async variantOf(hosted: HostedEnvironment, name: string, signal: AbortSignal): Promise<string | null | undefined> {
    const wanted = name.toLowerCase();
    if ((await this.variants(hosted, signal)).includes(wanted)) return wanted;
    return hosted.name.toLowerCase() === wanted ? null : undefined;
  }

  /** Names of the variants, lower case, the default one first. */
  async variants(hosted: HostedEnvironment, signal: AbortSignal): Promise<string[]> {
    const known = this.#variants.get(hosted.backend);
    if (known !== undefined && known.until > Date.now()) return known.names;
    const names = await hosted.backend.environments(signal);
    this.#variants.set(hosted.backend, { names, until: Date.now() + VARIANTS_TTL_MS });
    return names;
  }
}

export const unknownEnvironment = (name: string) => new PalestraError('unknown_variant', { detail: `unknown environment '${name}'` });

async function nullIfUnknown(found: Promise<HostedEnvironment>): Promise<HostedEnvironment | null> {
  try {
    return await found;
  } catch (error) {
    if (error instanceof PalestraError && error.code === 'deployment_not_found') return null;
    throw error;
  }
}
