import fc from 'fast-check';
import { expect, test } from 'vitest';
import { advance } from './alert-state.ts';
import { countHistory, judgeCount, judgeFinished, judgeSilence, silenceHistory } from './time-judgements.ts';

const MINUTE = 60_000;
const count = (value: number, minutes = 10) => ({ kind: 'count', q: 'stop:timeout', minutes, value, environment: null }) as const;
const silence = { kind: 'silence', minutes: 10, environment: null } as const;

test('a count fires above its value, and shows the rollouts as a query', () => {
  expect(judgeCount(count(2), 2, null).holds).toBe(false);
  expect(judgeCount(count(2), 3, null)).toMatchObject({
    holds: true,
    evidence: { text: '3 rollouts of stop:timeout within 10 min.', value: 3, threshold: 2, q: '(stop:timeout) received:10m' },
  });
});

test('the history of a count is what judging it at every moment finds', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(120), { maxLength: 40 }), fc.nat(4), (minutes, value) => {
      const arrivals = minutes.toSorted((a, b) => a - b).map((at) => at * MINUTE);
      const fires = advance(false, countHistory(count(value), arrivals)).changes.filter(({ kind }) => kind === 'firing').length;
      // Slowly: at every half minute, and before the arrivals of a moment.
      let [firing, expected] = [false, 0];
      for (let at = 0; at <= 131 * MINUTE; at += MINUTE / 2) {
        const holds = judgeCount(count(value), arrivals.filter((one) => one <= at && one > at - 10 * MINUTE).length, at).holds;
        if (holds && !firing) expected += 1;
        firing = holds;
      }
      fc.pre(expected < 10);
      // A rollout may leave the window at the moment when another one arrives: the history sees the moment between them.
      expect(fires).toBeGreaterThanOrEqual(expected);
      expect(fires).toBeLessThanOrEqual(expected + arrivals.length);
      expect(fires > 0).toBe(expected > 0);
    }),
  );
});

test('silence fires after its minutes and is resolved by the next rollout', () => {
  expect(judgeSilence(silence, 10 * MINUTE - 1, null).holds).toBe(false);
  expect(judgeSilence(silence, 10 * MINUTE, null)).toMatchObject({ holds: true, evidence: { text: 'No rollout for 10 min.', value: 10 } });
  const history = silenceHistory(silence, [
    { from: 0, to: 9 * MINUTE },
    { from: 20 * MINUTE, to: 45 * MINUTE },
  ]);
  expect(history.map(({ at, holds }) => [at! / MINUTE, holds])).toEqual([
    [30, true],
    [45, false],
  ]);
});

test('silence that lasts has fired and is not resolved', () => {
  const history = silenceHistory(silence, [
    { from: 0, to: 11 * MINUTE },
    { from: 11 * MINUTE, to: 30 * MINUTE, lasts: true },
  ]);
  expect(history.map(({ at, holds }) => [at! / MINUTE, holds])).toEqual([
    [10, true],
    [11, false],
    [21, true],
  ]);
});

test('a finished run is never silent', () => {
  expect(judgeFinished(silence)).toMatchObject({ holds: false, evidence: { text: 'The run is finished.' } });
});

test('an environment is part of the text and of the query', () => {
  const environment = 'acme/math';
  expect(judgeCount({ ...count(2), environment }, 3, null).evidence).toMatchObject({
    text: '3 rollouts of stop:timeout in acme/math within 10 min.',
    q: '(stop:timeout) env:acme/math received:10m',
  });
  expect(judgeSilence({ ...silence, environment }, 10 * MINUTE, null).evidence.text).toBe('No rollout in acme/math for 10 min.');
});
