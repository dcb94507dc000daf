import { PalestraError } from '@palestra/protocol';
import type { Caller, EnvironmentDirectory, HostedEnvironment, SessionEngine } from '@palestra/session';

/** How a request names its environment. */
export interface OrsAddress {
  caller: Caller;
  /** The session of `X-Session-ID` (`SessionEngine.sidOf`). */
  sid: string | null;
  /** `X-Session-ID` as sent, for responses; default: `sid`. */
  clientSid?: string | null;
  /** `X-Deployment` */
  deployment: string | null;
  /** First segment of `/{owner}/{name}/...`, an extension for clients without a deployment header. */
  owner: string | null;
  /** Path segment before the operation: a variant, or with an owner the environment's name; null: bare path. */
  segment: string | null;
}

export interface ResolvedAddress {
  hosted: HostedEnvironment;
  /** Lower case; null: the default variant. */
  variant: string | null;
  /** The name in responses: the segment as sent; on bare paths the default variant. */
  envName: string;
}

const VARIANTS_TTL_MS = 5_000;

/**
 * Resolves the environment and variant of a request by its session, deployment header, path or the fallback deployment
 * (docs/reference/ors.md#headers).
 */
export class OrsAddressResolver {
  readonly #variants = new WeakMap<HostedEnvironment['backend'], { names: string[]; until: number }>();

  constructor(
    readonly engine: SessionEngine,
    readonly directory: EnvironmentDirectory,
  ) {}

  async resolve(address: OrsAddress, signal: AbortSignal): Promise<ResolvedAddress> {
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

  /** The session's environment, that of the header, or the fallback; null without any. */
  async #byHeaders({ caller, sid, deployment }: OrsAddress): Promise<HostedEnvironment | null> {
    const pinned = sid === null ? null : await this.engine.environmentOf(caller, sid);
    if (pinned !== null) return pinned;
    return deployment === null ? nullIfUnknown(this.directory.resolve(null, caller)) : this.directory.resolve(deployment, caller);
  }

  /** An environment by its bare name, without the fallback deployment. */
  async byName(name: string, caller: Caller): Promise<HostedEnvironment | null> {
    const hosted = await nullIfUnknown(this.directory.resolve(name, caller));
    return hosted?.name.toLowerCase() === name.toLowerCase() ? hosted : null;
  }

  /** `undefined`: no such variant. The environment's own name is the default variant, null. */
  async variantOf(hosted: HostedEnvironment, name: string, signal: AbortSignal): Promise<string | null | undefined> {
    const variantName = name.toLowerCase();
    if ((await this.variants(hosted, signal)).includes(variantName)) return variantName;
    return hosted.name.toLowerCase() === variantName ? null : undefined;
  }

  /** Variants in lower case, the default first. */
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
