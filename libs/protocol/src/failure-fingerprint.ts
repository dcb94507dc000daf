import { CALL_FAILURES } from './vocabularies.ts';

/**
 * The fingerprint of the cause of a failure: 64 bits, in the API as 16 hexadecimal digits, in PostgreSQL as a `bigint`. Its last two bits
 * are the class, from 1. 0 marks a rollout whose cause is not derived yet.
 */

export type CauseClass = (typeof CALL_FAILURES)[number];

/** The code of a class in fingerprints; null for other words. */
export function failureClassCode(word: string): number | null {
  const position = (CALL_FAILURES as readonly string[]).indexOf(word);
  return position === -1 ? null : position + 1;
}

/** `hash`: 16 hexadecimal digits; the last two bits are replaced. */
export const fingerprintOfHash = (hash: string, cause: CauseClass): string =>
  hexOf((BigInt(`0x${hash}`) & ~3n) | BigInt(failureClassCode(cause)!));

export const classOfFingerprint = (fingerprint: string): CauseClass | undefined =>
  CALL_FAILURES[Number(BigInt(`0x${fingerprint}`) & 3n) - 1];
export const fingerprintToBigint = (fingerprint: string): string => BigInt.asIntN(64, BigInt(`0x${fingerprint}`)).toString();
export const fingerprintOfBigint = (stored: string): string => hexOf(BigInt.asUintN(64, BigInt(stored)));

const hexOf = (value: bigint): string => value.toString(16).padStart(16, '0');
