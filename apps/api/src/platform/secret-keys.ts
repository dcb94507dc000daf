import { type Config } from './config.ts';
import { randomSecret, readOrCreateSecret, replaceSecret } from './local-secrets.ts';

const FILE = 'server-secret';

/**
 * Key material of this service, never stored in the database. The current key encrypts and signs; earlier keys only decrypt and verify.
 * Each key has at least 32 characters; consumers derive their own keys from it.
 */
export class SecretKeys {
  #current: string;
  /** Newest first. Their signatures are still valid. */
  #previous: string[];
  /** Keys dropped while this process ran. Values in its memory may still be encrypted with them. */
  readonly #dropped: string[] = [];

  /** `store` saves generated keys, current one first; null where the configuration sets the keys. */
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

  /** The keys that decrypt stored values, current one first. */
  get readable(): string[] {
    return [...this.accepted, ...this.#dropped];
  }

  /** Whether the service can replace its key. False if the configuration sets the key. */
  get canRotate(): boolean {
    return this.store !== null;
  }

  /** Creates and saves a new current key; the one before still decrypts and verifies. Only if `canRotate`. */
  async rotate(): Promise<void> {
    const next = randomSecret();
    await this.store!([next, this.#current]);
    this.#dropped.push(...this.#previous);
    this.#previous = [this.#current];
    this.#current = next;
  }

  /** Earlier keys stop verifying at once and stop decrypting after the next start. Only if `canRotate`. */
  async dropPrevious(): Promise<void> {
    await this.store!([this.#current]);
    this.#dropped.push(...this.#previous);
    this.#previous = [];
  }
}

/** The configured keys, or those of a file in the data directory: one per line, current one first. */
export async function openSecretKeys(config: Pick<Config, 'secretKey' | 'previousSecretKeys' | 'dataDir'>): Promise<SecretKeys> {
  if (config.secretKey !== null) return new SecretKeys(config.secretKey, config.previousSecretKeys);
  const { value } = await readOrCreateSecret(config.dataDir, FILE, randomSecret);
  const [current = '', ...previous] = value.split(/\s+/);
  return new SecretKeys(current, [...previous, ...config.previousSecretKeys], (keys) =>
    replaceSecret(config.dataDir, FILE, keys.join('\n')),
  );
}
