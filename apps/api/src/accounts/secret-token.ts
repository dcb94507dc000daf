import { createHash, randomBytes } from 'node:crypto';

/** Tokens of 256 random bits: API keys, browser cookies, sign-in links. Only their SHA-256 is stored; at this entropy it needs no salt. */
export const newApiKey = (): string => `or_${randomBytes(32).toString('base64url')}`;
export const newToken = (): string => randomBytes(32).toString('base64url');
export const hashToken = (token: string): Buffer<ArrayBuffer> => Buffer.from(createHash('sha256').update(token).digest());
