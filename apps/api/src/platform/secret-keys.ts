import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { type Config } from './config.ts';
import { randomSecret, readOrCreateSecret, replaceSecret } from './local-secrets.ts';

const FILE = 'server-secret';
type StoreKeys = (keys: string[]) => Promise<unknown>;

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
    private readonly store: StoreKeys | null = null,
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
  return keysOf(value, config, (keys) => replaceSecret(config.dataDir, FILE, keys.join('\n')));
}

/** The keys that a service with this configuration uses now, for a process beside it. Creates none: without keys it opens nothing. */
export async function readSecretKeys(config: Pick<Config, 'secretKey' | 'previousSecretKeys' | 'dataDir'>): Promise<SecretKeys> {
  if (config.secretKey !== null) return new SecretKeys(config.secretKey, config.previousSecretKeys);
  const stored = await readFile(path.join(config.dataDir, FILE), 'utf8').catch(() => randomSecret());
  return keysOf(stored.trim(), config, null);
}

function keysOf(text: string, { previousSecretKeys }: Pick<Config, 'previousSecretKeys'>, store: StoreKeys | null): SecretKeys {
  const [current = '', ...previous] = text.split(/\s+/);
  return new SecretKeys(current, [...previous, ...previousSecretKeys], store);
}
