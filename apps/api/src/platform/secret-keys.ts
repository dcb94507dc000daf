import { type Config } from './config.ts';
import { randomSecret, readOrCreateSecret, replaceSecret } from './local-secrets.ts';

const FILE = 'server-secret';

/**
 * Key material of this service, never in the database: the current one seals and signs, earlier ones only open and verify. Each is at
 * least 32 characters; consumers derive keys of their own from it.
 */
export class SecretKeys {
  #current: string;
  /** Of before, newest first: what they signed is still valid. */
  #previous: string[];
  /** Keys that were dropped while this process ran: what lives in its memory may still be sealed with them. */
  readonly #dropped: string[] = [];

  /** `store` keeps the keys of a service that makes its own, current one first; null where the configuration sets them. */
  constructor(
    current: string,
    previous: string[] = [],
    private readonly store: ((keys: string[]) => Promise<unknown>) | null = null,
  ) {
    this.#current = current;
    this.#previous = previous.filter((key) => key !== current);
  }

  get current(): string {
    return this.#current;
  }

  /** The keys whose signatures are accepted, current one first. */
  get accepted(): string[] {
    return [this.#current, ...this.#previous];
  }

  /** The keys that open what is stored, current one first. */
  get readable(): string[] {
    return [...this.accepted, ...this.#dropped];
  }

  /** Whether the service can replace its key; where the configuration sets it, the operator does. */
  get canRotate(): boolean {
    return this.store !== null;
  }

  /** Makes a new current key, durably; the one before goes on opening and verifying. Only where `canRotate`. */
  async rotate(): Promise<void> {
    const next = randomSecret();
    await this.store!([next, this.#current]);
    this.#dropped.push(...this.#previous);
    this.#previous = [this.#current];
    this.#current = next;
  }

  /** Earlier keys verify nothing any more, and after the next start they open nothing. Only where `canRotate`. */
  async dropPrevious(): Promise<void> {
    await this.store!([this.#current]);
    this.#dropped.push(...this.#previous);
    this.#previous = [];
  }
}

/** The configured keys, or those of a file in the data directory: one a line, current one first. */
export async function openSecretKeys(config: Pick<Config, 'secretKey' | 'previousSecretKeys' | 'dataDir'>): Promise<SecretKeys> {
  if (config.secretKey !== null) return new SecretKeys(config.secretKey, config.previousSecretKeys);
  const { value } = await readOrCreateSecret(config.dataDir, FILE, randomSecret);
  const [current = '', ...previous] = value.split(/\s+/);
  return new SecretKeys(current, [...previous, ...config.previousSecretKeys], (keys) =>
    replaceSecret(config.dataDir, FILE, keys.join('\n')),
  );
}
