import { describe, expect, test } from 'vitest';
import type { ExportedRollout } from './exported-rollout.ts';
import { advantageOf, labelFile, preferenceFile, preferencePairs, rolloutFile } from '../index.ts';
import { each, linesOf, message, options, rollout, transcript } from './rollout-files.fixture.ts';

const ANSWERS = ['good', 'bad', 'good'].map((choice, at) => ({
  reviewer: `r${at}`,
  choice,
  comment: null,
  at: '2026-01-01T00:00:00.000Z',
}));

describe('SFT', () => {
  test('only what the model wrote carries loss; a rollout without a word of it is no example', async () => {
    const told = options();
    const silent = rollout(1, { messages: [message(0, 'user_message', 'hello?')] });
    const lines = await linesOf(rolloutFile(each([rollout(0), silent]), 'sft', told));
    expect(told.skipped.count).toBe(1);
    expect(lines).toHaveLength(1);
    const parts = [...lines[0].prompt, ...lines[0].completion].map(({ role, weight, train }: any) => [role, weight, train]);
    expect(parts).toEqual([
      ['system', 0, false],
      ['user', 0, false],
      ['assistant', 1, true],
      ['tool', 0, false],
    ]);
    expect(lines[0].completion[0].reasoning_content).toBe('Hm, the butler.');
    expect(lines[0]).toMatchObject({
      environment: 'acme/whodunit',
      environment_version: '3',
      step_prov: 'inferred',
      normaliser_version: 1,
    });
  });

  test('what the model thought in the middle of a turn belongs to that turn', async () => {
    const messages = [
      message(0, 'user_message', 'Who?'),
      message(1, 'reasoning', 'first'),
      message(2, 'assistant_message', 'I look.'),
      message(3, 'reasoning', '', { summary: 'second' }),
      message(4, 'tool_call', '{}', { name: 'look', call_id: 'a' }),
      message(5, 'tool_result', 'dark', { call_id: 'a' }),
      message(6, 'assistant_message', 'Nobody.'),
      message(7, 'reasoning', 'third'),
    ];
    const [{ completion }] = await linesOf(rolloutFile(each([rollout(0, { messages })]), 'sft', options()));
    expect(completion.map(({ role, reasoning_content }: any) => [role, reasoning_content])).toEqual([
      ['assistant', 'first\nsecond'],
      ['tool', undefined],
      ['assistant', 'third'],
    ]);
  });
});

describe('preference pairs', () => {
  const group = (key: string, rewards: (number | null)[], more: Partial<ExportedRollout>[] = []) =>
    rewards.map((reward, k) => rollout(Number(key) * 100 + k, { group_key: key, reward, messages: transcript(`m${k}`), ...more[k] }));

  test('best against worst of each group; none without variance, without two scored, or of rollouts that failed by no fault of theirs', async () => {
    const rows = [
      ...group('1', [0, 1, 0.5, null]),
      ...group('2', [1, 1, 1 + 5e-7]),
      ...group('3', [null, 0, null]),
      ...group('4', [0, 1], [{ failure: 'infrastructure' }]),
      ...group('5', [0, 1], [{ stop: 'timeout' }]),
      ...group('6', [-1, 0, 3]),
      rollout(1, { group_key: null, reward: 9 }),
    ];
    const pairs: [string | null, number, number, number | null][] = [];
    for await (const { chosen, rejected, group_n } of preferencePairs(each(rows)))
      pairs.push([chosen.group_key, chosen.reward!, rejected.reward!, group_n]);
    expect(pairs).toEqual([
      ['1', 1, 0, 3],
      ['6', 3, -1, 3],
    ]);
  });

  test('an example has the question once and both answers; groups of two runs are two, and different questions are none', async () => {
    const told = options();
    const other = { messages: [message(0, 'user_message', 'another question'), message(1, 'assistant_message', 'yes')] };
    const rows = [...group('1', [0, 1]), ...group('1', [1, 0], [{ run_id: 'run-2' }, { run_id: 'run-2' }]), ...group('2', [0, 1], [other])];
    const lines = await linesOf(preferenceFile(preferencePairs(each(rows)), 'preference', told));
    expect(lines).toHaveLength(2);
    expect(told.skipped.count).toBe(1);
    expect(lines[0]).toMatchObject({ margin: 1, chosen_reward: 1, rejected_reward: 0, group_key: '1', group_n: 2 });
    expect(lines[0].prompt.map(({ role }: any) => role)).toEqual(['system', 'user']);
    expect(lines[0].chosen[0].tool_calls[0].function.arguments).toBe('{"name": "m1"}');
    expect(lines[0].rejected[0].tool_calls[0].function.arguments).toBe('{"name": "m0"}');
  });

  test('a pair of a review has its lineage, and needs no rewards', async () => {
    const review = { queue_id: 'q1', queue: 'careful', queue_query: 'step:3', queue_seed: 7, answers: ANSWERS };
    const [better, worse] = group('1', [null, 1]);
    const lines = await linesOf(
      preferenceFile(each([{ chosen: better!, rejected: worse!, group_n: null, review }]), 'preference', options()),
    );
    expect(lines[0]).toMatchObject({ margin: null, chosen_reward: null, rejected_reward: 1, group_n: null, ...review });
  });

  test('a label is the most frequent answer, and none if two are equally frequent', async () => {
    const review = { queue_id: 'q1', queue: 'careful', queue_query: '', queue_seed: 7, answers: ANSWERS };
    const tied = { ...review, answers: ANSWERS.slice(0, 2) };
    const rows = group('1', [0, 1, 1]);
    const empty = { ...rows[2]!, messages: [] };
    const told = options();
    const labelled = [
      { rollout: rows[0]!, review },
      { rollout: rows[1]!, review: tied },
      { rollout: empty, review },
    ];
    const lines = await linesOf(labelFile(each(labelled), 'labels', told));
    expect(lines).toMatchObject([
      { rollout_id: rows[0]!.rollout_id, label: 'good', label_share: 2 / 3, reward: 0, queue: 'careful', answers: ANSWERS },
      { rollout_id: rows[1]!.rollout_id, label: null, label_share: null, reward: 1 },
    ]);
    expect(lines[0].prompt.map(({ role }: any) => role)).toEqual(['system', 'user']);
    expect(told.skipped.count).toBe(1);
  });

  test('advantages are those of docs/reference/metrics.md#canonical-metrics', () => {
    expect(advantageOf(1, { scored: 4, mean: 0.5, std: 0.577350269 })).toBeCloseTo(0.866024, 5);
    expect(advantageOf(null, { scored: 4, mean: 0.5, std: 0.5 })).toBeNull();
    expect(advantageOf(1, { scored: 1, mean: 1, std: null })).toBeNull();
    expect(advantageOf(1, { scored: 3, mean: 1, std: 0 })).toBe(0);
  });
});
