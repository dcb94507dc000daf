import type { SecretMap } from './backend.port.ts';

/** The session that secrets belong to. Secrets that are sealed for one session cannot be opened for another. */
export interface SealedRow {
  orgId: string;
  sid: string;
}

/** Encrypts secrets for the store. The key is not in the database. */
export interface SecretBox {
  seal(secrets: SecretMap, row: SealedRow): Uint8Array;
  /** Throws when they were sealed by another key, for another session, or changed since. */
  open(sealed: Uint8Array, row: SealedRow): SecretMap;
}
