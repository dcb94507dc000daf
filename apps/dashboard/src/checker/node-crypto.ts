import { md5 } from '@noble/hashes/legacy.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';

/**
 * Stands in for `node:crypto` in the browser (`vite.config.ts`), so that the checker computes the keys that the server computes. The
 * browser's own `crypto.subtle` is asynchronous and lacks MD5.
 */
const algorithms = { sha256, md5 };

export const createHash = (algorithm: keyof typeof algorithms) => ({
  update: (text: string) => ({ digest: (_encoding: 'hex') => bytesToHex(algorithms[algorithm](utf8ToBytes(text))) }),
});
