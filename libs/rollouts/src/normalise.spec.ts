import type { JsonObject } from '@palestra/protocol';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MESSAGE_FLAGS } from './events/message-flags.ts';
import type { MessageSkeleton } from './events/message-skeleton.ts';
import { clean } from './json/tolerant-json.ts';
import { NORMALISER_VERSION, normaliseRollout } from './normalise.ts';
import { unpackProvenance } from './provenance/provenance.ts';
import { message, rawRollouts, rollout, skyrlCall, skyrlStart, synthesised } from './raw-rollouts.fixture.ts';
import { rolloutFlagNames } from './rollout-flags.ts';
import { cpuTime } from '../../../tests/support/cpu-time.ts';
import { full } from '../../../tests/support/full.ts';

const normal = (start: JsonObject | null, messages: MessageSkeleton[] = [], rest = {}) => normaliseRollout(rollout(start, messages, rest));
const tinkerName = { rolloutName: 'a-b-train-4-step12-r3', environment: 'a/b', split: 'train' };

describe('step, sample and phase', () => {
  it.each<[string, JsonObject, JsonObject, number | null, string, string | null]>([
    ['the event', { ...tinkerName, step: 1, metadata: { step: 2 } }, { current_step: 3 }, 1, 'reported', 'step'],
    ['rollout_info', { ...tinkerName, metadata: { step: 2 } }, { current_step: 3 }, 3, 'reported', 'rollout_info.current_step'],
    ['metadata.step', { metadata: { global_step: 9, step: 2 } }, {}, 2, 'reported', 'metadata.step'],
    ['metadata.global_step', { metadata: { training_step: 8, global_step: 9 } }, {}, 9, 'reported', 'metadata.global_step'],
    ['metadata.training_step', { metadata: { training_step: 8 } }, {}, 8, 'reported', 'metadata.training_step'],
    ['the name', tinkerName, {}, 12, 'parsed', 'name.step'],
    ['nothing', { rolloutName: 'a-b-train-4' }, {}, null, 'unknown', null],
    ['none below 0', { step: -1, metadata: { step: -5, global_step: 0 } }, { current_step: -1 }, 0, 'reported', 'metadata.global_step'],
    ['no text, fraction or huge number', { step: '7', metadata: { step: 1.5, global_step: 1e12 } }, {}, null, 'unknown', null],
  ])('reads the step from %s', (_, start, rolloutInfo, step, value, rule) => {
    const result = normal(start, [], { rolloutInfo });
    expect(result.step).toBe(step);
    expect(result.provenance.step).toEqual({ value, rule });
    expect(unpackProvenance(result.prov).step).toBe(value);
  });

  it.each<[JsonObject, number | null, string]>([
    [{ metadata: { sample_idx: 0, rollout_idx: 5 } }, 0, 'reported'],
    [{ metadata: { rollout_idx: 5 } }, 5, 'reported'],
    [{ metadata: { repetition_id: 6 } }, 6, 'reported'],
    [tinkerName, 3, 'parsed'],
    [{ rolloutName: 'x' }, null, 'unknown'],
  ])('reads the sample of %j', (start, sampleIdx, provenance) => {
    expect(normal(start)).toMatchObject({ sampleIdx, provenance: { sample: { value: provenance } } });
  });

  it.each<[JsonObject, string | null, string]>([
    [{ split: 'test', metadata: { phase: 'train' }, run_info: { run_type: 'eval' } }, 'train', 'reported'],
    [{ split: 'train', run_info: { run_type: 'eval' } }, 'eval', 'reported'],
    [{ split: 'validation' }, 'eval', 'parsed'],
    [{ split: 'test' }, 'eval', 'parsed'],
    [{ split: 'train' }, 'train', 'inferred'],
    [{ split: 'hard', run_info: { run_type: 'adhoc' } }, null, 'unknown'],
  ])('reads the phase of %j', (start, phase, provenance) => {
    expect(normal(start)).toMatchObject({ phase, provenance: { phase: { value: provenance } } });
  });

  it('lets the owner’s regex read any name, behind what is reported', () => {
    const settings = { nameRegex: String.raw`^job(?P<step>\d+)_(?<task>\w+)@(?<sample>\d+)$` };
    const start = { rolloutName: 'job7_alpha@2', environment: 'a/b', split: 'train' };
    expect(normaliseRollout(rollout(start), settings)).toMatchObject({
      step: 7,
      sampleIdx: 2,
      taskKey: 'name:a/b:train:alpha',
      provenance: { step: { value: 'parsed', rule: 'settings.name_regex' }, group: { value: 'parsed' } },
    });
    expect(normaliseRollout(rollout({ ...start, step: 1 }), settings).step).toBe(1);
    expect(normaliseRollout(rollout({ ...start, rolloutName: 'job7_12@2' }), settings)).toMatchObject({ taskIndex: 12 });
  });
});

describe('group', () => {
  const base = { environment: 'a/b', split: 'train', rollout_info: { task_index: 3 } };

  it('is the reported id, also a number, apart at each step', () => {
    const [one, two] = [1, 2].map((step) => normal({ ...base, step, metadata: { uid: 77 } }));
    expect(one).toMatchObject({ groupId: '77', provenance: { group: { value: 'reported', rule: 'metadata.uid' } } });
    expect(one!.groupKey).not.toBe(two!.groupKey);
  });

  it('is parsed from task and step, and unknown without a step', () => {
    expect(normal({ ...base, step: 1 })).toMatchObject({ provenance: { group: { value: 'parsed' } } });
    expect(normal({ ...base, step: 1 }).groupKey).toBe(normal({ ...base, step: 1, rolloutName: 'other' }).groupKey);
    expect(normal({ ...base, step: 1 }).groupKey).not.toBe(normal({ ...base, step: 1, split: 'test' }).groupKey);
    expect(normal(base)).toMatchObject({ groupId: null, groupKey: null, provenance: { group: { value: 'unknown' } } });
  });

  it('reads the expected size and the policy step', () => {
    expect(normal({ metadata: { n_samples: 16, policy_step: 4 } })).toMatchObject({ groupSize: 16, policyStep: 4 });
  });
});

describe('keys of groups', () => {
  it.each<JsonObject>([{ metadata: { group_id: '0' } }, { rollout_info: { task_index: 0 } }])(
    'of %j differ by environment and variant',
    (start) => {
      const places = [{}, { environment: 'a/b' }, { environment: 'a/c' }, { environment: 'a/b', variant: 'hard' }, { variant: 'hard' }];
      const keys = places.map((place) => normal({ step: 3, ...start, ...place }).groupKey);
      expect(keys).not.toContain(null);
      expect(new Set(keys).size).toBe(places.length);
    },
  );
});

describe('reward', () => {
  const result = (index: number, reward: number | null, rest = {}) =>
    message(index, 'tool_result', { callId: `c${index}`, reward, ...rest });
  const call = (index: number) => message(index, 'tool_call', { callId: `c${index + 1}`, name: 't' });

  it('sums the messages, keeps what was reported and flags a difference', () => {
    const messages = [call(0), result(1, -0.5), call(2), result(3, 1)];
    expect(normal({ metadata: { total_reward: 0.5 } }, messages)).toMatchObject({
      reward: 0.5,
      rewardReported: 0.5,
      rewardPositive: 1,
      lastReward: 1,
      rewardSteps: 2,
      flags: 0,
      provenance: { reward: { value: 'reported', rule: 'metadata.total_reward' } },
    });
    const other = normal({ metadata: { total_reward: 0.6 } }, messages);
    expect(other).toMatchObject({ reward: 0.5, rewardReported: 0.6, provenance: { reward: { value: 'parsed' } } });
    expect(rolloutFlagNames(other.flags)).toEqual(['reward_mismatch']);
  });

  it('takes a reported total without message rewards, but not SkyRL’s 0.0 for “none”', () => {
    const messages = [call(0), result(1, null)];
    expect(normal({ metadata: { reward: 2 } }, messages)).toMatchObject({ reward: 2, lastReward: 2, rewardSteps: 0 });
    expect(normal({ metadata: { total_reward: 0 } }, messages)).toMatchObject({
      reward: null,
      rewardReported: 0,
      lastReward: null,
      flags: 0,
    });
    expect(normal({}, [call(0), result(1, 0)])).toMatchObject({ reward: 0 });
  });

  it('counts a stamped turn once: reward on its other events too, or several results finished', () => {
    const stamped = [message(0, 'assistant_message', { reward: 1 }), { ...call(1), reward: 1 }, result(2, 1, { isFinished: true })];
    expect(normal({}, stamped)).toMatchObject({ reward: 1, rewardSteps: 1, flags: 2 });
    const parallel = [call(0), call(1), result(2, 1, { callId: 'c1', isFinished: true }), result(3, 1, { callId: 'c2', isFinished: true })];
    expect(normal({}, parallel)).toMatchObject({ reward: 1, rewardSteps: 1, flags: 2 });
    const uploaded = [call(0), call(1), result(2, 1, { callId: 'c1' }), result(3, 1, { callId: 'c2' })];
    expect(normal({}, uploaded)).toMatchObject({ reward: 2, rewardSteps: 2, flags: 0 });
    const turns = [call(0), result(1, 1), call(2), result(3, 1, { isFinished: true })];
    expect(normal({}, turns)).toMatchObject({ reward: 2, rewardSteps: 2, flags: 0 });
  });

  it('knows rewards as far as single precision does', () => {
    const flags = rolloutFlagNames(normal({}, [call(0), result(1, 1e39)]).flags);
    expect(flags).toEqual(['nonfinite']);
    expect(normal({}, [call(0), result(1, -1e39), call(2), result(3, 1)])).toMatchObject({
      reward: null,
      rewardSum: null,
      lastReward: null,
    });
    expect(normal({ metadata: { reward: 1e39 } }, [call(0), result(1, null)])).toMatchObject({
      reward: null,
      rewardReported: null,
      flags: 4,
    });
    expect(normal({ metadata: { total_reward: 1e39 } }, [call(0), result(1, 2)])).toMatchObject({ reward: 2, flags: 4 });
    expect(normal({}, [call(0), result(1, 1e-60)])).toMatchObject({ reward: 0, lastReward: 0, flags: 0 });
    expect(normal({}, [call(0), result(1, 3e38), call(2), result(3, 1e-30)])).toMatchObject({ reward: 3e38, lastReward: 1e-30 });
  });

  it('has no total where one reward is not finite, or the sum is not', () => {
    const flags = MESSAGE_FLAGS.nonfinite | MESSAGE_FLAGS.nonfiniteReward;
    expect(normal({}, [call(0), result(1, 1), call(2), result(3, null, { flags })])).toMatchObject({ reward: null, flags: 4 });
    expect(normal({}, [call(0), result(1, 1), result(2, null, { flags: MESSAGE_FLAGS.nonfinite, callId: 'c1' })]).reward).toBe(1);
    expect(normal({}, [call(0), result(1, 1e308), call(2), result(3, 1e308)])).toMatchObject({ reward: null, rewardSum: null });
  });

  it('leaves a rollout unscored that failed by no fault of its policy', () => {
    const failed = (failureClass: string) => normal({ metadata: { total_reward: 3 } }, [call(0), result(1, 1)], { failureClass });
    expect(failed('environment')).toMatchObject({ reward: null, partialReward: 1, rewardPositive: 1, lastReward: 1, stop: 'env_error' });
    expect(failed('infrastructure')).toMatchObject({ reward: null, stop: 'infra_error' });
    expect(rolloutFlagNames(failed('infrastructure').flags)).toContain('infra_error');
    for (const stop of ['env_error', 'infra_error', 'timeout', 'aborted', 'cancelled']) {
      const broken = normal({ metadata: { stop_reason: stop } }, [call(0), result(1, 0.4)]);
      expect(broken).toMatchObject({ stop, reward: null, partialReward: 0.4, failureClass: null });
    }
    expect(normal({ metadata: { stop_reason: 'parse_error' } }, [call(0), result(1, 0.4)])).toMatchObject({
      reward: 0.4,
      partialReward: null,
    });
  });
});

describe('SkyRL', () => {
  it('has the last step’s reward only when the last turn was a call (vector 11)', () => {
    const messages = [...skyrlCall(0, 1, 'look', null), ...skyrlCall(3, 3, 'submit', 1)];
    expect(normal(skyrlStart(4, 'finished', 1), messages)).toMatchObject({ source: 'skyrl', reward: 1, lastReward: 0, turns: 4 });
    expect(normal(skyrlStart(3, 'finished', 1), messages)).toMatchObject({ reward: 1, lastReward: 1 });
  });

  it('reads a name only when its prefix is the event’s own', () => {
    const start = skyrlStart(1);
    expect(normal(start)).toMatchObject({ taskIndex: 17, taskKey: 'index:acme/math:train:17' });
    expect(normal({ ...start, split: 'test' })).toMatchObject({ taskIndex: null, source: 'generic' });
    expect(normal({ ...start, environment: 'acme/other' })).toMatchObject({ taskIndex: null });
  });

  it('is not fooled by an enormous number of turns', () => {
    const foreign = [message(0, 'tool_call', { name: 'x', callId: '000000000000' }), message(1, 'tool_result', { callId: '000000000000' })];
    const startedAt = cpuTime();
    expect(normal(skyrlStart(2_000_000_000), foreign).stop).toBe('unknown');
    expect(cpuTime() - startedAt).toBeLessThan(1_000);
  });
});

describe('turns, calls and messages', () => {
  it('counts runs of the policy (vector 13)', () => {
    const say = (index: number) => message(index, 'assistant_message');
    const answer = (index: number) => message(index, 'tool_result', { callId: 'x' });
    expect(normal({}, [message(0, 'user_message'), say(1), answer(2), say(3), answer(4), say(5)]).turns).toBe(3);
    expect(normal({}, [message(0, 'user_message'), message(1, 'reasoning'), say(2)]).turns).toBe(1);
    expect(normal({}).turns).toBeNull();
  });

  it('counts gaps, orphans, errors and images', () => {
    const flags = MESSAGE_FLAGS.error | MESSAGE_FLAGS.image;
    const result = normal({}, [message(2, 'tool_result', { callId: 'a', flags }), message(5, 'tool_call', { callId: 'b' })]);
    expect(result).toMatchObject({ gaps: 4, lastIndex: 5, messageCount: 2, calls: 1, results: 1, callErrors: 1 });
    expect(rolloutFlagNames(result.flags)).toEqual(['orphan_result', 'has_image', 'tool_error', 'gap']);
  });

  it('orders messages that share an index by everything else, and drops only true repeats', () => {
    const twins = [1, 0.5, null].map((reward) => message(3, 'tool_result', { callId: 'a', reward, sentAt: 5 }));
    const expected = normal({}, twins);
    expect(expected).toMatchObject({ messageCount: 3, reward: 1.5, rewardFinal: 1, gaps: 3 });
    expect(normal({}, [...twins.toReversed(), ...twins])).toEqual(expected);
  });

  it('tells an upload at the end from a live one', () => {
    const at = (sentAt: number, index: number) => message(index, 'assistant_message', { sentAt });
    expect(normal({}, [at(0, 0), at(9, 1)]).timeKind).toBe('upload');
    expect(normal({}, [at(0, 0), at(10, 1)]).timeKind).toBe('live');
  });

  it('estimates tokens and says so; never under the name of a reported count', () => {
    const messages = [message(0, 'assistant_message', { bytes: 401 }), message(1, 'tool_result', { bytes: 8 })];
    expect(normal({}, messages)).toMatchObject({ tokensOut: 101, tokensTool: 2, provenance: { tokens: { value: 'inferred' } } });
    expect(normal({ metadata: { tokens: { output: 7 } } }, messages)).toMatchObject({
      tokensOut: 7,
      tokensTool: null,
      provenance: { tokens: { value: 'reported' } },
    });
    expect(normal({})).toMatchObject({ tokensOut: null, provenance: { tokens: { value: 'unknown' } } });
  });

  it('knows sessions that were recorded here', () => {
    const start = { environment: 'a/b', metadata: { session_id: 'sid-1' }, rollout_info: { task_index: 0 } };
    const messages = [message(0, 'tool_call', { callId: 'a' }), message(1, 'tool_result', { callId: 'a' })];
    expect(normal(start, messages)).toMatchObject({ source: 'palestra', sessionId: 'sid-1', version: NORMALISER_VERSION });
    expect(normal(start, [...messages, message(2, 'assistant_message')]).source).toBe('generic');
    expect(normaliseRollout(rollout(start, messages), { source: 'verl' }).source).toBe('verl');
  });
});

const skeleton = fc.record<MessageSkeleton>({
  index: fc.integer({ min: 0, max: 30 }),
  type: fc.constantFrom('reasoning', 'tool_call', 'tool_result', 'user_message', 'assistant_message', 'system_message'),
  name: fc.option(fc.constantFrom('a', 'b')),
  callId: fc.option(fc.constantFrom('x', 'y', 'z')),
  reward: fc.option(fc.double({ noNaN: true, noDefaultInfinity: true })),
  isFinished: fc.boolean(),
  flags: fc.integer({ min: 0, max: 127 }),
  bytes: fc.nat(1_000),
  sentAt: fc.nat(1_000),
});
const starts = fc.constantFrom(
  ...Object.values(synthesised).map((bodies) => rawRollouts(bodies)[0]!.start!),
  skyrlStart(3),
  {} as JsonObject,
);

describe('properties', () => {
  it('does not depend on the order or the repetition of messages', () => {
    const shuffled = fc
      .array(skeleton, { maxLength: 20 })
      .chain((messages) =>
        fc.tuple(
          fc.constant(messages),
          fc.shuffledSubarray([...messages, ...messages], { minLength: messages.length * 2, maxLength: messages.length * 2 }),
        ),
      );
    fc.assert(
      fc.property(starts, shuffled, (start, [messages, other]) => {
        expect(normaliseRollout(rollout(start, other))).toEqual(normaliseRollout(rollout(start, messages)));
      }),
    );
  });

  it('never throws, whatever the start event and the settings are', () => {
    const keys = ['metadata', 'run_info', 'rollout_info', 'task_spec', 'step', 'rolloutName', 'environment', 'split', 'variant'];
    const inner = [
      'step',
      'stop',
      'stop_reason',
      'num_turns',
      'total_reward',
      'tokens',
      'uid',
      'session_id',
      'agent',
      'framework',
      '__proto__',
    ];
    const object = fc.dictionary(fc.oneof(fc.constantFrom(...inner), fc.string()), fc.jsonValue(), { maxKeys: 8 });
    const start = fc.dictionary(fc.oneof(fc.constantFrom(...keys), fc.string()), fc.oneof(object, fc.jsonValue()), { maxKeys: 8 });
    const settings = fc.record({ nameRegex: fc.option(fc.string()), maxTurns: fc.option(fc.integer()) });
    fc.assert(
      fc.property(start, object, fc.array(skeleton, { maxLength: 8 }), settings, (event, info, messages, run) => {
        const raw = rollout(clean(event).value as JsonObject, messages, { rolloutInfo: clean(info).value as JsonObject });
        const result = normaliseRollout(raw, run);
        expect(result.reward === null || Number.isFinite(result.reward)).toBe(true);
        expect(result.prov).toBeLessThan(2 ** 18);
        expect(normaliseRollout(raw, run)).toEqual(result);
      }),
      { numRuns: full ? 500 : 150 },
    );
  });
});
