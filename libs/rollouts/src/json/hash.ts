import { md5 } from '@noble/hashes/legacy.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';

/** Pure JavaScript, because the dashboard computes the same keys in the browser. */

export const sha256Hex = (text: string): string => bytesToHex(sha256(utf8ToBytes(text)));
export const md5Hex = (text: string): string => bytesToHex(md5(utf8ToBytes(text)));

/** The first 63 bits of the SHA-256 of a text, in decimal: fits PostgreSQL's `bigint`, never negative. */
export function hash63(text: string): string {
  const bytes = sha256(utf8ToBytes(text));
  const view = new DataView(bytes.buffer, bytes.byteOffset, 8);
  return (view.getBigUint64(0) & 0x7fff_ffff_ffff_ffffn).toString();
}
