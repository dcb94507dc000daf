import { createCipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { SecretKeys } from './secret-keys.ts';
import { AesSecretBox } from './secret-box.ts';

const row = { orgId: 'acme', sid: 's1' };
const secrets = { TOKEN: { value: 'sk-1' } };
const box = (current: string, previous: string[] = []) => new AesSecretBox(new SecretKeys(current, previous));

test('opens for the row that it was sealed for, and no other', () => {
  const sealed = box('a').seal(secrets, row);
  expect(box('a').open(sealed, row)).toEqual(secrets);
  for (const other of [
    { ...row, sid: 's2' },
    { ...row, orgId: 'evil' },
    { orgId: 'acm', sid: 'es1' },
  ])
    expect(() => box('a').open(sealed, other)).toThrow(/another session/);
});

test('opens for the table that it was sealed for, and no other', () => {
  const keys = new SecretKeys('a');
  const sealed = new AesSecretBox(keys, 'environment_secrets').seal(secrets, row);
  expect(new AesSecretBox(keys, 'environment_secrets').open(sealed, row)).toEqual(secrets);
  expect(() => box('a').open(sealed, row)).toThrow(/another key/);
  expect(() => new AesSecretBox(keys, 'environment_git_links').open(sealed, row)).toThrow(/another environment/);
});

test('opens with an earlier key, and seals with the current one', () => {
  const sealed = box('a').seal(secrets, row);
  const rotated = box('b', ['a']);
  expect(rotated.open(sealed, row)).toEqual(secrets);
  const renewed = rotated.renew(sealed, row);
  expect(box('b').open(renewed, row)).toEqual(secrets);
  expect(() => box('a').open(renewed, row)).toThrow(/another key/);
  expect(rotated.renew(renewed, row)).toBe(renewed);
  // What no key opens stays for whoever has the key.
  expect(box('c').renew(sealed, row)).toBe(sealed);
});

test('every changed byte is noticed', () => {
  const sealed = Buffer.from(box('a').seal(secrets, row));
  for (let at = 0; at < sealed.length; at += 1) {
    const changed = Buffer.from(sealed);
    changed[at]! ^= 1;
    expect(() => box('a').open(changed, row)).toThrow();
  }
  // A format without row or key id, of the same bytes, has another key.
  expect(() => box('a').open(Buffer.concat([Buffer.of(1), sealed.subarray(9)]), row)).toThrow();
  expect(() => box('a').open(sealed.subarray(0, 20), row)).toThrow();
});

test('reads rows of before, and seals them again', () => {
  const key = Buffer.from(hkdfSync('sha256', 'a', '', 'palestra session secrets', 32));
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  const text = Buffer.concat([cipher.update(JSON.stringify(secrets)), cipher.final()]);
  const old = Buffer.concat([Buffer.of(1), nonce, cipher.getAuthTag(), text]);
  expect(box('b', ['a']).open(old, row)).toEqual(secrets);
  expect(box('b').open(box('b', ['a']).renew(old, row), row)).toEqual(secrets);
});
