import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { SecretKeys } from '../platform/secret-keys.ts';
import { openSecrets, sealSecret } from './webhook-secrets.ts';
import { messageIdOf, newWebhookSecret, signatureHeaders } from './webhook-signature.ts';

test('signs as the Standard Webhooks specification says', () => {
  const secret = `whsec_${Buffer.from('a key of the receiver').toString('base64')}`;
  const other = newWebhookSecret();
  const headers = signatureHeaders('msg_1', 1_700_000_000_999, '{"a":1}', [secret, other]);
  const hmac = createHmac('sha256', 'a key of the receiver').update('msg_1.1700000000.{"a":1}').digest('base64');
  expect(headers).toMatchObject({ 'webhook-id': 'msg_1', 'webhook-timestamp': '1700000000' });
  expect(headers['webhook-signature']!.split(' ')).toEqual([`v1,${hmac}`, expect.stringMatching(/^v1,[\w+/]{43}=$/)]);
  expect(Buffer.from(other.slice('whsec_'.length), 'base64')).toHaveLength(32);
  expect(messageIdOf('0d9e3c1a-7a3e-4b57-9a39-0d3f8a4c2b11')).toBe('msg_0d9e3c1a7a3e4b579a390d3f8a4c2b11');
});

test('a replaced secret signs beside the new one for a day, and opens for its own webhook only', () => {
  const keys = new SecretKeys('k'.repeat(32));
  const webhook = { id: 'one', orgId: 'org' };
  const first = sealSecret(keys, webhook, 0);
  const second = sealSecret(keys, webhook, 1_000, first.sealed);
  expect(openSecrets(keys, webhook, second.sealed, 2_000)).toEqual([second.secret, first.secret]);
  expect(openSecrets(keys, webhook, second.sealed, 86_402_000)).toEqual([second.secret]);
  expect(() => openSecrets(keys, { id: 'two', orgId: 'org' }, second.sealed, 0)).toThrow();
  expect(() => openSecrets(keys, { id: 'one', orgId: 'other' }, second.sealed, 0)).toThrow();
  expect(second.sealed.includes(second.secret)).toBe(false);
});
