import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { PalestraError } from '@palestra/protocol';
import type { SealedRow, SecretBox, SecretMap } from '@palestra/session';
import type { SecretKeys } from './secret-keys.ts';

/** The old format, without key id and row. We still read it, but never write it. */
const UNBOUND_FORMAT = 1;
const FORMAT = 2;
const ID_BYTES = 8;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEADER_BYTES = 1 + ID_BYTES;

interface Derived {
  id: Buffer;
  key: Buffer;
  /** The key of the old format. */
  unboundKey: Buffer;
}
const derive = (secret: string, info: string, bytes: number): Buffer => Buffer.from(hkdfSync('sha256', secret, '', info, bytes));

/** The table that holds what a box seals. */
export type SealedTable = 'sessions' | 'environment_secrets' | 'environment_git_links';

const NOUNS = { sessions: 'session', environment_secrets: 'environment', environment_git_links: 'environment' } as const satisfies Record<
  SealedTable,
  string
>;

/**
 * AES-256-GCM. Layout: format byte, key id, nonce, tag, cipher text. The header, the table and the row are authenticated (AAD), so secrets of
 * one row cannot be opened for another. Each format has its own keys, so a changed format byte cannot be used to open a text.
 */
export class AesSecretBox implements SecretBox {
  readonly #derived = new Map<string, Derived>();

  constructor(
    readonly keys: SecretKeys,
    private readonly table: SealedTable = 'sessions',
  ) {}

  seal(secrets: SecretMap, row: SealedRow): Uint8Array {
    const { id, key } = this.#derive(this.keys.current);
    const header = Buffer.concat([Buffer.of(FORMAT), id]);
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(associated(header, this.table, row));
    const text = Buffer.concat([cipher.update(JSON.stringify(secrets), 'utf8'), cipher.final()]);
    return Buffer.concat([header, nonce, cipher.getAuthTag(), text]);
  }

  open(sealed: Uint8Array, row: SealedRow): SecretMap {
    const box = Buffer.from(sealed);
    try {
      if (box[0] === FORMAT) return this.#open(box, row);
      // Written before other tables had secrets.
      if (box[0] === UNBOUND_FORMAT && this.table === 'sessions') return this.#openUnbound(box);
      throw new Error('unknown format');
    } catch (cause) {
      throw new PalestraError('secrets_invalid', {
        detail: `The secrets of this ${NOUNS[this.table]} were sealed with another key, or for another ${NOUNS[this.table]}: all replicas need the same PALESTRA_SECRET_KEY.`,
        cause,
      });
    }
  }

  /** The first bytes of everything that the current key has sealed. */
  get header(): Buffer {
    return Buffer.concat([Buffer.of(FORMAT), this.#derive(this.keys.current).id]);
  }

  /** The same secrets sealed with the current key. Unchanged if they already are, or if none of our keys opens them. */
  renew(sealed: Uint8Array, row: SealedRow): Uint8Array {
    if (this.header.equals(sealed.subarray(0, HEADER_BYTES))) return sealed;
    try {
      return this.seal(this.open(sealed, row), row);
    } catch {
      return sealed;
    }
  }

  #open(box: Buffer, row: SealedRow): SecretMap {
    const header = box.subarray(0, HEADER_BYTES);
    const known = this.keys.readable.map((secret) => this.#derive(secret)).find(({ id }) => id.equals(header.subarray(1)));
    if (known === undefined) throw new Error('unknown key id');
    return decrypt(known.key, box.subarray(HEADER_BYTES), associated(header, this.table, row));
  }

  #openUnbound(box: Buffer): SecretMap {
    for (const secret of this.keys.readable) {
      try {
        return decrypt(this.#derive(secret).unboundKey, box.subarray(1), null);
      } catch {
        // Try the next key.
      }
    }
    throw new Error('no key opens it');
  }

  #derive(secret: string): Derived {
    const known = this.#derived.get(secret);
    if (known !== undefined) return known;
    const derived = {
      id: derive(secret, 'palestra session secrets key id', ID_BYTES),
      key: derive(secret, 'palestra session secrets 2', 32),
      unboundKey: derive(secret, 'palestra session secrets', 32),
    };
    this.#derived.set(secret, derived);
    return derived;
  }
}

const associated = (header: Buffer, table: SealedTable, { orgId, sid }: SealedRow): Buffer =>
  Buffer.concat([header, Buffer.from(JSON.stringify([table, orgId, sid]))]);

/** `body`: nonce, tag, cipher text. Throws when the key or the associated data does not match. */
function decrypt(key: Buffer, body: Buffer, aad: Buffer | null): SecretMap {
  const textAt = NONCE_BYTES + TAG_BYTES;
  const decipher = createDecipheriv('aes-256-gcm', key, body.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAuthTag(body.subarray(NONCE_BYTES, textAt));
  if (aad !== null) decipher.setAAD(aad);
  return JSON.parse(decipher.update(body.subarray(textAt), undefined, 'utf8') + decipher.final('utf8')) as SecretMap;
}
