import type { SecretMap } from './backend.port.ts';

/** Seals secrets for the store. Its key is not in the database. */
export interface SecretBox {
  seal(secrets: SecretMap): Uint8Array;
  /** Throws when it was sealed by another key or altered. */
  open(sealed: Uint8Array): SecretMap;
}
