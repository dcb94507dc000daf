import type { SecretKeys } from '../platform/secret-keys.ts';
import { AesSecretBox } from '../platform/secret-box.ts';
import { newWebhookSecret } from './webhook-signature.ts';

/** How long the replaced secret signs too, so that a receiver can change its own in between. */
const OVERLAP_MS = 24 * 3_600_000;

interface WebhookKey {
  id: string;
  orgId: string;
}
const rowOf = ({ id, orgId }: WebhookKey) => ({ orgId, sid: `webhook ${id}` });

/** A new secret, and what the database stores of it. `previous`: what it replaces. */
export function sealSecret(keys: SecretKeys, webhook: WebhookKey, now: number, previous?: Uint8Array) {
  const box = new AesSecretBox(keys);
  const secret = newWebhookSecret();
  const old = previous && box.open(previous, rowOf(webhook));
  const secrets = { current: { value: secret }, ...(old && { previous: old['current']!, until: { value: String(now + OVERLAP_MS) } }) };
  return { secret, sealed: Buffer.from(box.seal(secrets, rowOf(webhook))) };
}

/** The secrets that sign now, newest first. Throws `secrets_invalid` when no key opens them. */
export function openSecrets(keys: SecretKeys, webhook: WebhookKey, sealed: Uint8Array, now: number): string[] {
  const { current, previous, until } = new AesSecretBox(keys).open(sealed, rowOf(webhook));
  return [current, Number(until?.value) > now ? previous : undefined].flatMap((secret) => secret?.value ?? []);
}
