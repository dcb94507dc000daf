import { expect, test } from 'vitest';
import type { MetricCondition } from '@palestra/protocol';
import { conditionText } from './alert-text.ts';
import { judgeSteps, mergeSteps, type StepPoint } from './step-judgements.ts';

const condition = (change: Partial<MetricCondition> = {}): MetricCondition => ({
  kind: 'metric',
  metric: 'tool_error',
  tool: 'accuse',
  stop: null,
  op: 'above',
  value: 0.1,
  steps: 1,
  phase: null,
  min_n: 20,
  environment: null,
  ...change,
});
const share = (step: number, sum: number, count: number): StepPoint => ({ step, sum, count, squares: null });

test('a share is judged at each step with enough results, and the evidence says which rollouts show it', () => {
  const { judgements, skipped } = judgeSteps(condition(), [share(10, 2, 40), share(11, 4, 10), share(12, 40, 116), share(13, 4, 40)]);
  expect(skipped).toBe(1);
  expect(judgements.map(({ step, holds }) => [step, holds])).toEqual([
    [10, false],
    [12, true],
    // Equal is not above.
    [13, false],
  ]);
  expect(judgements[1]!.evidence).toEqual({
    text: 'Tool errors of accuse: 34.5 % at step 12 (95 % interval 26.5 % to 43.5 %, 116 results).',
    value: 40 / 116,
    threshold: 0.1,
    n: 116,
    low: expect.closeTo(0.2646, 3),
    high: expect.closeTo(0.4349, 3),
    from_step: 12,
    step: 12,
    q: 'step:12 tool.error:accuse',
    baseline: null,
  });
});

test('several steps are merged by their counts, as the pages merge them', () => {
  const points = [share(1, 0, 90), share(2, 9, 10), share(5, 2, 10)];
  const { judgements } = judgeSteps(condition({ steps: 2, min_n: 1 }), points);
  expect(judgements.map(({ step, evidence }) => [evidence.from_step, step, evidence.value])).toEqual([
    [1, 1, 0],
    [1, 2, 0.09],
    [2, 5, 0.55],
  ]);
  expect(judgements[2]!.evidence.q).toBe('step:2..5 tool.error:accuse');
  // Steps before `from` count and are not judged again.
  expect(judgeSteps(condition({ steps: 2, min_n: 1 }), points, 5).judgements).toEqual([judgements[2]]);
});

test('rewards have the interval of Student over rollouts', () => {
  // 0 and 1, twenty times each: mean .5, deviation .50637.
  const { judgements } = judgeSteps(condition({ metric: 'reward_mean', tool: null, op: 'below', value: 0.6 }), [
    { step: 3, count: 40, sum: 20, squares: 20 },
  ]);
  expect(judgements[0]).toMatchObject({ holds: true, evidence: { value: 0.5, n: 40, q: 'step:3 is:scored' } });
  expect(judgements[0]!.evidence.low).toBeCloseTo(0.338_06, 4);
  expect(judgements[0]!.evidence.text).toBe('Mean reward: .500 at step 3 (95 % interval .338 to .662, 40 rollouts).');
});

test('a share that is neither none nor all is not shown as such', () => {
  const textOf = (hits: number) => judgeSteps(condition({ min_n: 1 }), [share(1, hits, 10_000)]).judgements[0]!.evidence.text;
  expect([0, 4, 9_996, 10_000].map((hits) => textOf(hits).match(/: (.*?) at step/)![1])).toEqual(['0 %', '<0.1 %', '>99.9 %', '100 %']);
});

test('the text of a condition has the value that a member set', () => {
  const textOf = (value: number) => conditionText(condition({ value }));
  expect([0.0004, 0.07, 0.9996].map((value) => textOf(value).match(/above (.*?) at/)![1])).toEqual(['0.04 %', '7 %', '99.96 %']);
});

test('a step without figures is never judged', () => {
  expect(judgeSteps(condition({ min_n: 1, op: 'below', value: 1 }), [share(0, 0, 0)])).toEqual({ judgements: [], skipped: 1 });
});

test('a tool name cannot become another clause of the query', () => {
  const { judgements } = judgeSteps(condition({ tool: 'a reward:1', min_n: 1 }), [share(1, 1, 1)]);
  expect(judgements[0]!.evidence.q).toBe('step:1 tool.error:"a reward:1"');
});

test('an environment is named, and its clause cannot become another one', () => {
  const { judgements } = judgeSteps(condition({ environment: 'acme/a b:c', phase: 'train', min_n: 1 }), [share(1, 1, 1)]);
  expect(judgements[0]!.evidence).toMatchObject({
    text: expect.stringMatching(/^Tool errors of accuse in acme\/a b:c: 100 % at step 1 /),
    q: 'step:1 tool.error:accuse phase:train env:"acme/a b:c"',
  });
});

test('variants of an environment are one point of their step', () => {
  const reward = (step: number, count: number, sum: number, squares: number): StepPoint => ({ step, count, sum, squares });
  expect(mergeSteps([reward(1, 2, 1, 1), reward(1, 4, 3, 2.5), reward(2, 1, 1, 1)])).toEqual([reward(1, 6, 4, 3.5), reward(2, 1, 1, 1)]);
  expect(mergeSteps([share(1, 1, 2), share(1, 0, 5)])).toEqual([share(1, 1, 7)]);
});
