import { expect, test } from 'vitest';
import { changedSettings } from './changed-settings.ts';

const known = async () => ({ max: 4, min_warm: 1, variables: { A: '1', B: '2' } });

test('only the named settings change', async () => {
  process.env['PALESTRA_TEST_VALUE'] = 'from here';
  expect(await changedSettings({ minWarm: 0, env: ['B=x=y', 'PALESTRA_TEST_VALUE'], removeEnv: ['A'] }, known)).toEqual({
    max: 4,
    min_warm: 0,
    variables: { B: 'x=y', PALESTRA_TEST_VALUE: 'from here' },
  });
});

test('without options the service is not asked', async () => {
  const unused = () => Promise.reject(new Error('asked'));
  expect(await changedSettings({ env: [] }, unused)).toBeNull();
});
