import type { SecretMap } from './backend.port.ts';

/** The session that secrets belong to: sealed for one, they open for no other. */
export interface SealedRow {
  orgId: string;
  sid: string;
}

/** Seals secrets for the store. Its key is not in the database. */
export interface SecretBox {
  seal(secrets: SecretMap, row: SealedRow): Uint8Array;
  /** Throws when it was sealed by another key or for another session, or altered. */
  open(sealed: Uint8Array, row: SealedRow): SecretMap;
}
