import { expect, test } from 'vitest';
import { redactMessages, redactNarrow } from '../index.ts';
import { message, rollout } from './rollout-files.fixture.ts';

test('credentials are replaced, and JSON stays JSON', () => {
  const secret = `{"key": "sk-${'a'.repeat(30)}", "h": "Bearer abcdefghijklmnop.qrs", "aws": "AKIAABCDEFGHIJKLMNOP", "n": 1.0}`;
  const row = redactNarrow(rollout(0, { metadata: secret }));
  expect(JSON.parse(row.metadata!)).toEqual({
    key: '[redacted:api_key]',
    h: 'Bearer [redacted:bearer_token]',
    aws: '[redacted:aws_key]',
    n: 1,
  });
  const pem = '-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----';
  const text = JSON.stringify({ command: 'grep "-----BEGIN RSA PRIVATE KEY-----" key', half: '-----BEGIN PRIVATE KEY-----\nMII\\' });
  expect(JSON.parse(redactNarrow(rollout(0, { metadata: text })).metadata!)).toEqual({
    command: 'grep "[redacted:private_key]" key',
    half: '[redacted:private_key]',
  });
  expect(redactMessages([message(0, 'tool_result', `see ${pem} there`)])[0]!.content).toBe('see [redacted:private_key] there');
});
