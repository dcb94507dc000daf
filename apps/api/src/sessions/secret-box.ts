import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { PalestraError } from '@palestra/protocol';
import type { SecretBox, SecretMap } from '@palestra/session';

const FORMAT = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** AES-256-GCM; layout: format byte, nonce, tag, cipher text. The key is derived from a secret that is not in the database. */
export class AesSecretBox implements SecretBox {
  readonly #key: Buffer;

  constructor(secret: string) {
    this.#key = Buffer.from(hkdfSync('sha256', secret, '', 'palestra session secrets', 32));
  }

  seal(secrets: SecretMap): Uint8Array {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce);
    const text = Buffer.concat([cipher.update(JSON.stringify(secrets), 'utf8'), cipher.final()]);
    return Buffer.concat([Buffer.of(FORMAT), nonce, cipher.getAuthTag(), text]);
  }

  open(sealed: Uint8Array): SecretMap {
    const box = Buffer.from(sealed);
    try {
      if (box[0] !== FORMAT) throw new Error('unknown format');
      const text = 1 + NONCE_BYTES + TAG_BYTES;
      const decipher = createDecipheriv('aes-256-gcm', this.#key, box.subarray(1, 1 + NONCE_BYTES));
      decipher.setAuthTag(box.subarray(1 + NONCE_BYTES, text));
      return JSON.parse(decipher.update(box.subarray(text), undefined, 'utf8') + decipher.final('utf8')) as SecretMap;
    } catch (cause) {
      throw new PalestraError('secrets_invalid', {
        detail: 'The secrets of this session were sealed with another key: all replicas need the same PALESTRA_SECRET_KEY.',
        cause,
      });
    }
  }
}
