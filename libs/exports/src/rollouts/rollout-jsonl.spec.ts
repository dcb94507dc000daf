import { describe, expect, test } from 'vitest';
import { bytesOf, rollout, write } from './rollout-files.fixture.ts';

describe('JSON lines', () => {
  test('keep JSON as values, with every digit', async () => {
    const text = (await bytesOf(write([rollout(0)], 'jsonl'))).toString();
    expect(text).toContain('"metadata":{"big": 12345678901234567890}');
    expect(text).toContain('"task_spec":{"seed": 1.0}');
    expect(JSON.parse(text)).toMatchObject({ received_at: '2023-11-14T22:13:21.000Z', group_key: '-9007199254740993' });
  });
});
