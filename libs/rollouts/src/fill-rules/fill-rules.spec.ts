import { type JsonObject, PROVENANCE_FIELDS, PROVENANCES } from '@palestra/protocol';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { countGaps, missingIndexes, missingRanges } from '../events/gaps.ts';
import { canonicalArgsHash, canonicalJson } from '../json/canonical-json.ts';
import { trainedReward, type TrainedRewardInput } from '../outcome/trained-reward.ts';
import { matchName, nameRegexProblem } from '../provenance/name-regex.ts';
import { packProvenance, provenanceShift, unpackProvenance, withProvenance } from '../provenance/provenance.ts';
import { sourceOf } from '../provenance/source.ts';
import { groupKeyOf } from './group-key.ts';
import { taskKeyOf } from './task-key.ts';
import { cpuTime } from '../../../../tests/support/cpu-time.ts';

describe('provenance', () => {
  it('packs two bits a field and unpacks them again', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...PROVENANCES), { minLength: 9, maxLength: 9 }), (values) => {
        const fields = Object.fromEntries(PROVENANCE_FIELDS.map((field, at) => [field, values[at]!]));
        expect(unpackProvenance(packProvenance(fields))).toEqual(fields);
      }),
    );
    expect(packProvenance({ step: 'reported', group: { value: 'inferred', rule: 'x' } })).toBe(0b0111);
    expect((packProvenance({ stop: 'parsed' }) >> provenanceShift('stop')) & 3).toBe(2);
    expect(unpackProvenance(withProvenance(packProvenance({ step: 'reported', stop: 'parsed' }), 'step', 'inferred'))).toMatchObject({
      step: 'inferred',
      stop: 'parsed',
    });
  });
});

describe('canonicalJson', () => {
  it.each([
    ['{"b": 1.0, "a": [10E-1, -0.0, 1e3]}', '{"a":[1,0,1000],"b":1}'],
    ['{"x":{"z":null,"y":"é"}}', String.raw`{"x":{"y":"\u00e9","z":null}}`],
    ['  {"answer": "2"}\n', '{"answer":"2"}'],
    ['', '{}'],
    ['null', '{}'],
    ['{"n": NaN}', '{"n": null}'],
    [String.raw`{"s":"a\u0000b"}`, '{"s":"ab"}'],
    ['{"n": 1152921504606846976}', '{"n": 1.152921504606847e+18}'],
  ])('hashes %s as %s', (a, b) => {
    expect(canonicalArgsHash(a)).toBe(canonicalArgsHash(b));
  });

  it.each([
    ['{"n": 1}', '{"n": "1"}'],
    ['{"n": 1}', '{"n": 1.0000001}'],
    ['[1,2]', '[2,1]'],
    ['not json', '"not json"'],
    ['{}', '[]'],
  ])('tells %s from %s', (a, b) => {
    expect(canonicalArgsHash(a)).not.toBe(canonicalArgsHash(b));
  });

  it('is the SHA-256 of the canonical text, and never throws', () => {
    expect(canonicalArgsHash(null)).toBe('44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a');
    fc.assert(fc.property(fc.string(), (text) => /^[0-9a-f]{64}$/.test(canonicalArgsHash(text))));
    expect(canonicalArgsHash('['.repeat(100_000))).toHaveLength(64);
    expect(canonicalArgsHash('['.repeat(5_000) + ']'.repeat(5_000))).toHaveLength(64);
  });

  it('has one spelling for members in any order', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (object) => {
        const other = Object.fromEntries(Object.entries(object).toReversed());
        expect(canonicalJson(other)).toBe(canonicalJson(object));
      }),
    );
  });
});

describe('taskKeyOf', () => {
  const start = { environment: 'acme/my-math', split: 'train', rolloutName: 'acme-my-math-train-17', task_spec: { q: 1 } };
  const keyOf = (event: JsonObject, info: JsonObject = {}, prompt: string | null = 'Hi') => taskKeyOf(event, info, null, prompt);

  it('applies the rules in order', () => {
    const rules: [JsonObject, JsonObject, string, string][] = [
      [start, { task_index: 4 }, 'rollout_info.task_index', 'index:acme/my-math:train:4'],
      [start, {}, 'name.index', 'index:acme/my-math:train:17'],
      [{ ...start, rolloutName: 'acme-my-math-train-17-step3-r0' }, {}, 'name.index', 'index:acme/my-math:train:17'],
      [{ ...start, rolloutName: 'acme-my-math-0123456789ab-0a1b2c3d' }, {}, 'task_spec', 'spec:acme/my-math:'],
      [{ ...start, rolloutName: 'acme-my-math-0123456789ab-0a1b2c3d', task_spec: null }, {}, 'name.hash', 'hash:acme/my-math:0123456789ab'],
      [{ ...start, rolloutName: 'x', task_spec: {} }, {}, 'prompt', 'prompt:acme/my-math:'],
    ];
    for (const [event, info, rule, key] of rules) {
      const found = keyOf(event, info);
      expect(found.provenance.rule).toBe(rule);
      expect(found.key?.startsWith(key)).toBe(true);
    }
    expect(keyOf({}, {}, null)).toMatchObject({ key: null, provenance: { value: 'unknown' } });
  });

  it('does not take the index of another environment or split, whatever dashes are in the names', () => {
    expect(keyOf({ ...start, split: 'math-train' }).index).toBeNull();
    expect(keyOf({ ...start, environment: 'acme/my' }).index).toBeNull();
    expect(keyOf({ ...start, environment: 'acme/my', split: 'math-train' }).index).toBe(17);
  });

  it('has one key a task_spec, and no two tasks of one key', () => {
    const spec = (task_spec: JsonObject, environment = 'a') => keyOf({ environment, task_spec }).key;
    expect(spec({ a: 1, b: 2 })).toBe(spec({ b: 2, a: 1 }));
    expect(spec({ a: 1 })).not.toBe(spec({ a: 1 }, 'b'));
    const index = (environment: string, split: string) => keyOf({ environment, split }, { task_index: 1 }).key;
    expect(index('a:b', 'c')).not.toBe(index('a', 'b:c'));
  });
});

describe('sourceOf', () => {
  it.each([
    ['SkyRL-train', 'skyrl'],
    ['miles', 'slime/miles'],
    ['tinker-cookbook', 'tinker'],
    ['verl', 'verl'],
    ['trl', 'trl'],
    ['my-loop', 'generic'],
  ])('believes the framework %s', (framework, source) => {
    expect(sourceOf({ start: { run_info: { framework } }, types: new Set() })).toBe(source);
  });

  it('needs the keys and the name', () => {
    const metadata = { stop_reason: 'finished', total_reward: 1, num_turns: 2 };
    const start = { environment: 'a/b', split: 'train', rolloutName: 'a-b-train-1', metadata };
    expect(sourceOf({ start, types: new Set() })).toBe('skyrl');
    expect(sourceOf({ start: { ...start, rolloutName: 'mine' }, types: new Set() })).toBe('generic');
    expect(sourceOf({ start: { ...start, metadata: {} }, types: new Set() })).toBe('generic');
  });
});

describe('matchName', () => {
  it.each([
    ['(a', /RE2/],
    ['(?=a)(?P<step>1)', /RE2/],
    ['a(b)', /named groups/],
    ['a'.repeat(201), /200/],
  ])('refuses %s', (regex, problem) => {
    expect(nameRegexProblem(regex)).toMatch(problem);
    expect(matchName(regex, 'a')).toBeNull();
  });

  it('answers in linear time on a hostile regex', () => {
    const startedAt = cpuTime();
    expect(matchName('(?P<task>(a+)+)$', `${'a'.repeat(10_000)}!`)).toBeNull();
    expect(cpuTime() - startedAt).toBeLessThan(2_000);
  });

  it('leaves out groups that did not take part', () => {
    expect(matchName('(?P<step>\\d+)|(?P<task>x)', 'x')).toEqual({ task: 'x', step: null, sample: null });
  });
});

describe('gaps', () => {
  it('counts and names what is missing, also when an index is enormous', () => {
    expect(countGaps([])).toBe(0);
    expect(countGaps([2, 3, 3, 6])).toBe(4);
    expect(missingRanges([2, 3, 3, 6])).toEqual([
      [0, 1],
      [4, 5],
    ]);
    expect(missingIndexes([])).toEqual([]);
    expect(missingIndexes([2, 3, 3, 6])).toEqual([0, 1, 4, 5]);
    expect(missingIndexes([2, 6])).toEqual([0, 1, 3, 4, 5]);
    expect(missingIndexes([2_147_483_646])).toHaveLength(1000);
  });
});

describe('groupKeyOf', () => {
  it('is a stable 63-bit number', () => {
    expect(groupKeyOf('train', 'index:a/b:train:1', 3)).toBe('7092051866728223573');
    expect(groupKeyOf(null, 't', 1)).toBe(groupKeyOf('train', 't', 1));
    expect(groupKeyOf('eval', 't', 1)).not.toBe(groupKeyOf('train', 't', 1));
    expect(groupKeyOf('train', 't', null, 1)).not.toBe(groupKeyOf('train', 't', 1));
    expect(groupKeyOf('train', 't', 2, 1)).toBe(groupKeyOf('train', 't', 2));
    fc.assert(fc.property(fc.string(), fc.nat(), (task, step) => BigInt(groupKeyOf('train', task, step)) < 2n ** 63n));
  });
});

describe('trainedReward', () => {
  const facts = (rest: Partial<TrainedRewardInput> = {}): TrainedRewardInput => ({
    source: 'slime/miles',
    stop: 'finished',
    failureClass: null,
    rewardSteps: 2,
    rewardSum: 1.5,
    rewardMax: 1,
    rewardMin: 0.5,
    rewardFinal: 0.5,
    ...rest,
  });
  const settings = { rewardReduce: 'sum', nonterminalReward: -1, minReward: -10, maxReward: 10 } as const;
  const none = { rewardSteps: 0, rewardSum: null, rewardMax: null, rewardMin: null, rewardFinal: null };

  it.each([
    ['sum', 1.5, 0.5],
    ['mean', 0.75, 0.5 / 3],
    ['max', 1, 1],
    ['min', 0.5, -1],
    ['last', 0.5, -1],
  ] as const)('reduces by %s', (rewardReduce, finished, cut) => {
    expect(trainedReward(facts(), { ...settings, rewardReduce })).toBeCloseTo(finished, 9);
    expect(trainedReward(facts({ stop: 'max_turns' }), { ...settings, rewardReduce })).toBeCloseTo(cut, 9);
  });

  it('clamps, and adds nothing where nothing is configured', () => {
    expect(trainedReward(facts(), { ...settings, maxReward: 1 })).toBe(1);
    expect(trainedReward(facts({ stop: 'max_turns' }), { ...settings, minReward: 1 })).toBe(1);
    expect(trainedReward(facts({ stop: 'max_turns' }), { ...settings, nonterminalReward: null })).toBe(1.5);
  });

  it('knows who trains on nothing', () => {
    expect(trainedReward(facts(none), settings)).toBe(0);
    expect(trainedReward(facts({ ...none, source: 'tinker' }), settings)).toBeNull();
    expect(trainedReward(facts({ ...none, source: 'tinker', stop: 'max_turns' }), settings)).toBe(-1);
  });

  it('is not told before all four settings are there, nor for a failed rollout', () => {
    for (const key of Object.keys(settings)) expect(trainedReward(facts(), { ...settings, [key]: undefined })).toBeNull();
    expect(trainedReward(facts({ failureClass: 'environment', stop: 'env_error' }), settings)).toBeNull();
  });
});
