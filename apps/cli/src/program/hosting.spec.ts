import { expect, test } from 'vitest';
import { parse, wordsOf } from './parse-line.fixture.ts';

const optionsOf = async (line: string) => (await parse(wordsOf(line))).opts();

test('settings of instances are read with their units', async () => {
  expect(
    await optionsOf('palestra env scale --memory 1.5g --disk 64MB --cpus 0.5 --egress pypi.org,*.acme.example --env A=b'),
  ).toMatchObject({
    memory: 1_536,
    disk: 64,
    cpus: 0.5,
    egress: ['pypi.org', '*.acme.example'],
    env: ['A=b'],
  });
  expect(await optionsOf('palestra env deploy --egress open --no-promote')).toMatchObject({
    egress: 'open',
    promote: false,
    channel: 'stable',
  });
});

test.each([
  'palestra env scale --memory 512',
  'palestra env scale --cpus 0',
  'palestra env scale --min-warm 101',
  'palestra env scale --max 1.5',
  'palestra env scale --egress https://pypi.org',
  'palestra env scale --env =x',
  'palestra env scale --isolation total',
  'palestra env deploy --channel Stable',
  'palestra env promote 3 --percent 0',
  'palestra env logs --tail 10001',
])('%s is refused', async (line) => {
  await expect(parse(wordsOf(line))).rejects.toThrow(/invalid|expected/i);
});
