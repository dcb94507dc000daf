import path from 'node:path';
import { expect, test } from 'vitest';
import { sharedPalestra } from '../../support/palestra.ts';
import { drive } from './contract.ts';

/** AReaL's configuration classes import torch. */
test('AReaL 1.0.4 reads the configuration of examples/areal', async () => {
  const file = path.resolve(import.meta.dirname, '../../../examples/areal/config.yaml');
  const program = { python: 'verl', program: 'areal_config.py', args: [file], run: 'none' };
  expect(await drive(await sharedPalestra(), program)).toEqual({
    train: 'tasks.parquet',
    tokenizer: 'Qwen/Qwen2.5-1.5B-Instruct',
    tokens: 2048,
    samples: [8, 8],
    engines: [
      ['fsdp', 4],
      ['sglang', 4],
    ],
  });
});
