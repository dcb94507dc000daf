import { createHash } from 'node:crypto';

/** The dashboard replaces `node:crypto` by its `checker/node-crypto.ts`, which has these two algorithms only. */

export const sha256Hex = (text: string): string => createHash('sha256').update(text).digest('hex');
export const md5Hex = (text: string): string => createHash('md5').update(text).digest('hex');

/** The first 63 bits of the SHA-256 of a text, in decimal. It fits PostgreSQL's `bigint` and is never negative. */
export const hash63 = (text: string): string => (BigInt(`0x${sha256Hex(text).slice(0, 16)}`) & 0x7fff_ffff_ffff_ffffn).toString();
