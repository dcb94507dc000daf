import { expect, test } from 'vitest';
import { sharedPalestra } from '../../support/palestra.ts';
import { assertNoSession, drive, groupsOf, rolloutsOf } from './contract.ts';
import { hostColours } from './colours.ts';

test('Oumi trains a step with the configuration of examples/oumi', async () => {
  const palestra = await sharedPalestra();
  const colours = await hostColours(palestra, 'colours-oumi');
  const run = 'oumi';
  const played = await drive<{ type: string }>(palestra, {
    python: 'oumi',
    program: 'oumi_train.py',
    args: [colours.environment],
    run,
    // Its configuration looks for adapters of the model.
    env: { HF_HUB_OFFLINE: '1' },
  }).finally(colours.close);
  expect(played.type).toBe('trl_grpo');
  const rows = await rolloutsOf(palestra, run, 8);
  expect(rows.map(({ step, turns, stop }) => [step, turns, stop])).toEqual(Array(8).fill([0, 1, 'finished']));
  expect(rows.map(({ sample }) => sample)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  expect(groupsOf(rows)).toHaveLength(1);
  expect(rows.every(({ reward }) => reward === 0 || reward === 1)).toBe(true);
  await assertNoSession(palestra);
});
