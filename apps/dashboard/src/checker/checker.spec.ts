import { describe, expect, it } from 'vitest';
import { EXAMPLES, textOf } from './examples.ts';
import { check } from './check.ts';
import { fieldsOf, missingFieldsOf, warningsOf } from './fields.ts';
import { reportOf, verdictOf } from './report.ts';

const NOW = 1_795_215_100_000;
const example = (id: string) => textOf(EXAMPLES.find((candidate) => candidate.id === id)!);
const firstRollout = (text: string) => check(text, NOW).rollouts[0]!;
const known = (text: string) =>
  Object.fromEntries(fieldsOf(firstRollout(text)).map(({ name, value, provenance, source }) => [name, [value, provenance, source]]));

describe('the examples', () => {
  it('recommended has all fields as sent', () => {
    expect(known(example('recommended'))).toMatchObject({
      task: ['9', 'reported', 'rollout_info.task_index'],
      step: ['40', 'reported', 'rollout_info.current_step'],
      group: ['g-40-9', 'reported', 'metadata.group_id'],
      sample: ['2', 'reported', 'metadata.sample_idx'],
      phase: ['train', 'reported', 'metadata.phase'],
      reward: ['.250', 'reported', 'metadata.reward_total'],
      'stop reason': ['max_turns', 'reported', 'metadata.stop_reason'],
      turns: ['1', 'reported', 'metadata.num_turns'],
      tokens: ['20 written, 5 of tools, 100 of the prompt', 'reported', 'metadata.tokens.output'],
      session: ['sid-1', 'reported', 'metadata.session_id'],
    });
    expect(missingFieldsOf(firstRollout(example('recommended')))).toEqual([]);
    expect(reportOf(check(example('recommended'), NOW))).toContain('The upload has all recommended fields.');
  });

  it('SkyRL has the task in the name; step and group need the whole run', () => {
    expect(firstRollout(example('skyrl')).normalised.source).toBe('skyrl');
    expect(known(example('skyrl'))).toMatchObject({
      task: ['17', 'parsed', 'rolloutName'],
      step: [null, 'unknown', null],
      group: [null, 'unknown', null],
      reward: ['1.25', 'reported', 'metadata.total_reward'],
      'stop reason': ['finished', 'parsed', 'messages[].isFinished'],
      turns: ['2', 'reported', 'metadata.num_turns'],
    });
    expect(missingFieldsOf(firstRollout(example('skyrl'))).map(({ key }) => key)).toContain('rollout_info.current_step');
  });

  it('slime, miles, tinker and firehorse are recognised', () => {
    expect(firstRollout(example('slime')).normalised.source).toBe('slime/miles');
    expect(known(example('slime'))).toMatchObject({ step: [null, 'unknown', null], reward: ['1.50', 'reported', 'metadata.reward_sum'] });
    expect(firstRollout(example('tinker')).normalised.source).toBe('tinker');
    expect(known(example('tinker'))).toMatchObject({
      task: ['4', 'parsed', 'rolloutName'],
      step: ['12', 'reported', 'metadata.step'],
      sample: ['3', 'reported', 'metadata.rollout_idx'],
      'stop reason': ['max_tokens', 'reported', 'metadata.stop'],
      reward: [null, 'unknown', null],
    });
    expect(warningsOf(firstRollout(example('tinker')))).toContain('A tool result is an error');
    expect(firstRollout(example('firehorse')).normalised.source).toBe('firehorse');
    expect(known(example('firehorse'))).toMatchObject({
      phase: ['eval', 'reported', 'run_info.run_type'],
      split: ['test', 'reported', 'split'],
    });
  });
});

describe('check', () => {
  const [start, ...messages] = EXAMPLES.find(({ id }) => id === 'tinker')!.events;

  it('accepts one event, a list, lines, or a body', () => {
    const shapes = [
      [JSON.stringify(start), 'event', 1],
      [JSON.stringify([start, ...messages]), 'list', 6],
      [[start, ...messages].map((event) => JSON.stringify(event)).join('\n'), 'lines', 6],
      [JSON.stringify({ events: [start] }), 'none', 1],
    ] as const;
    for (const [text, wrapping, kept] of shapes)
      expect(check(text, NOW)).toMatchObject({ status: 200, wrapping, accepted: kept, problems: [] });
    expect(firstRollout(JSON.stringify(messages)).start).toBeNull();
  });

  it('is as tolerant as the server: accepts NaN and counts repeated ids once', () => {
    const text = JSON.stringify([start, ...messages, messages[0]]);
    expect(check(text, NOW)).toMatchObject({ accepted: 6, repeated: 1 });
    expect(warningsOf(firstRollout(JSON.stringify({ ...start, metadata: { step: 1, x: 'N' } }).replace('"N"', 'NaN')))).toContain(
      'A value is NaN or Infinity and is stored as null, or a reward exceeds single precision',
    );
  });

  it('names the rejected part', () => {
    const bad = JSON.stringify([start, { ...messages[0], index: -1 }, { ...messages[1], type: 'thought' }, 7]);
    const { status, accepted, problems } = check(bad, NOW);
    expect([status, accepted]).toEqual([200, 1]);
    expect(problems.map(({ target }) => target)).toEqual(['events[1]', 'events[2]', 'events[3]']);
    expect(problems[0]!.text).toBe('index must be an integer from 0.');
    expect(verdictOf(check(bad, NOW))).toBe('Accepted with status 200: 1 event would be stored, 3 rejected.');
    expect(check(JSON.stringify({ ...start, runName: '' }), NOW)).toMatchObject({ status: 422, accepted: 0 });
    expect(check('{"events": 3}', NOW)).toMatchObject({ status: 422, problems: [{ target: 'body' }] });
    expect(check('{"events": [', NOW).problems[0]!.text).toMatch(/^The request body is not valid JSON: /);
  });

  it('reports a recommended field at the wrong path', () => {
    const misplaced = { ...start, run_info: { group_id: 'g' }, n_samples: 4 };
    const missing = missingFieldsOf(firstRollout(JSON.stringify(misplaced)));
    expect(missing.find(({ key }) => key === 'metadata.n_samples')?.misplaced).toBe('n_samples');
    expect(missing.find(({ key }) => key === 'metadata.phase')?.misplaced).toBeNull();
  });
});
