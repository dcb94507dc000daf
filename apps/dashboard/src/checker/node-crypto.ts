import { md5 } from '@noble/hashes/legacy.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';

/**
 * Replaces `node:crypto` in the browser (`vite.config.ts`), so that the checker computes the same keys as the server. `crypto.subtle` of
 * the browser is asynchronous and has no MD5.
 */
const algorithms = { sha256, md5 };

export const createHash = (algorithm: keyof typeof algorithms) => ({
  update: (text: string) => ({ digest: (_encoding: 'hex') => bytesToHex(algorithms[algorithm](utf8ToBytes(text))) }),
});
