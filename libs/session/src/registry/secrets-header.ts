import { PalestraError } from '@palestra/protocol';
import type { SecretMap } from '../ports/backend.port.ts';

/** Decodes `X-Secrets`: base64 of `{"<KEY>": {"value": "...", "allowed_domains"?: [...]}}`. null without the header. Throws `secrets_invalid`. */
export function decodeSecrets(header: string | null): SecretMap | null {
  if (header === null || header.trim() === '') return null;
  let decoded: unknown;
  try {
    decoded = JSON.parse(Buffer.from(header, 'base64').toString('utf8'));
  } catch {
    throw new PalestraError('secrets_invalid');
  }
  if (typeof decoded !== 'object' || decoded === null || Array.isArray(decoded)) throw new PalestraError('secrets_invalid');
  return Object.fromEntries(Object.entries(decoded).map(([key, entry]) => [key, readSecret(entry)]));
}

function readSecret(entry: unknown): SecretMap[string] {
  if (typeof entry !== 'object' || entry === null || !('value' in entry) || typeof entry.value !== 'string') {
    throw new PalestraError('secrets_invalid');
  }
  const domains: unknown = 'allowed_domains' in entry ? entry.allowed_domains : undefined;
  if (domains === undefined || domains === null) return { value: entry.value };
  if (!Array.isArray(domains) || !domains.every((domain) => typeof domain === 'string')) throw new PalestraError('secrets_invalid');
  return { value: entry.value, allowed_domains: domains };
}
