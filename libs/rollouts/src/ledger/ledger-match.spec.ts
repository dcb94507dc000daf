import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalArgsHash } from '../json/canonical-json.ts';
import type { LedgerCall, UploadedCall } from './ledger-alignment.ts';
import { type ClaimedRollout, type LedgerSession, matchLedger, MAX_DIFFERENCES } from './ledger-match.ts';
import { cpuTime } from '../../../../tests/support/cpu-time.ts';

const NOW = 1_795_215_000_000;
type Call = [tool: string, args: string, reward?: number | null, finished?: boolean];

const uploaded = (...calls: Call[]): UploadedCall[] =>
  calls.map(([tool, args, reward = null, finished = false], at) => ({
    index: 2 * at + 1,
    tool,
    argsHash: canonicalArgsHash(args),
    reward,
    finished,
  }));
const recorded = (...calls: Call[]): LedgerCall[] =>
  calls.map(([tool, args, reward = null, finished = false], at) => ({
    seq: 100 + at,
    tool,
    argsHash: canonicalArgsHash(args),
    reward,
    finished,
    durationMs: 10 * (at + 1),
    failureClass: 'ok',
  }));

const claim = (calls: UploadedCall[], rest: Partial<ClaimedRollout> = {}): ClaimedRollout => ({
  environment: 'acme/math',
  split: 'train',
  taskIndex: 7,
  taskKey: 'index:acme/math:train:7',
  sessionId: null,
  startedAt: NOW,
  calls,
  ...rest,
});
const session = (sid: string, calls: LedgerCall[], rest: Partial<LedgerSession> = {}): LedgerSession => ({
  sid,
  environment: 'acme/math',
  split: 'train',
  taskIndex: 7,
  taskKey: null,
  lastCallAt: NOW - 1_000,
  calls,
  ...rest,
});

const look: Call = ['look', '{"zoom": 2.0, "at": "x"}'];
const sameLook: Call = ['look', '{"at":"x","zoom":2}'];
const submit: Call = ['submit', '{"answer":"2"}', 1, true];

describe('matchLedger', () => {
  it('tells the task when all sessions that match have the same one, also those of other rollouts', () => {
    const unknown = claim(uploaded(look, submit), { split: null, taskIndex: null, taskKey: null });
    const of = (sid: string, taskIndex: number | null, rest: Partial<LedgerSession> = {}) =>
      session(sid, recorded(look, submit), { taskIndex, ...rest });
    const taskOf = (...sessions: LedgerSession[]) => matchLedger(unknown, sessions).task;
    expect(taskOf(of('a', 3))).toEqual({ split: 'train', index: 3 });
    expect(taskOf(of('a', 3), of('b', 3))).toEqual({ split: 'train', index: 3 });
    expect(taskOf(of('a', 3), of('b', 4))).toBe('ambiguous');
    expect(taskOf(of('a', 3), of('b', 4, { taken: true }))).toBe('ambiguous');
    expect(taskOf(of('a', null))).toBeNull();
    expect(taskOf()).toBeNull();
  });

  it('does not take the task of a session that the rollout names and whose task differs', () => {
    const named = (taskIndex: number) =>
      matchLedger(claim(uploaded(look, submit), { sessionId: 'a', taskIndex }), [session('a', recorded(look, submit))]).task;
    expect(named(7)).toEqual({ split: 'train', index: 7 });
    expect(named(8)).toBeNull();
  });

  it('verifies the only session with the same calls, with its true latency', () => {
    const other = session('other', recorded(look, ['submit', '{"answer":"3"}', 0, true]));
    const match = matchLedger(claim(uploaded(look, submit)), [other, session('mine', recorded(sameLook, submit))]);
    expect(match).toEqual({
      verdict: 'verified',
      sid: 'mine',
      confidence: 1,
      provenance: 'inferred',
      differences: [],
      task: { split: 'train', index: 7 },
      calls: [
        { index: 1, ledgerSeq: 100, durationMs: 10, failureClass: 'ok' },
        { index: 3, ledgerSeq: 101, durationMs: 20, failureClass: 'ok' },
      ],
    });
  });

  it('collapses a client’s retries onto the try that was answered, and allows calls behind the last', () => {
    const failed: LedgerCall = { ...recorded(look)[0]!, seq: 90, failureClass: 'infrastructure', durationMs: null };
    const calls = [failed, ...recorded(look, submit, ['late', '{}'])];
    const match = matchLedger(claim(uploaded(look, submit)), [session('a', calls)]);
    expect(match).toMatchObject({ verdict: 'verified', calls: [{ ledgerSeq: 100 }, { ledgerSeq: 101 }] });
    const scoredFirst = [...recorded(submit), { ...recorded(['submit', '{"answer":"2"}'])[0]!, seq: 101 }];
    expect(matchLedger(claim(uploaded(submit)), [session('a', scoredFirst)])).toMatchObject({
      verdict: 'verified',
      calls: [{ ledgerSeq: 100 }],
    });
  });

  it('does not collapse what the policy itself repeated', () => {
    expect(matchLedger(claim(uploaded(look, look, submit)), [session('a', recorded(look, look, submit))])).toMatchObject({
      verdict: 'verified',
      calls: [{ ledgerSeq: 100 }, { ledgerSeq: 101 }, { ledgerSeq: 102 }],
    });
    const match = matchLedger(claim(uploaded(look, look, submit), { sessionId: 'a' }), [session('a', recorded(look, submit))]);
    expect(match).toMatchObject({ verdict: 'partial', differences: [{ kind: 'missing_call' }] });
  });

  it('believes a session that is named, and lists what differs', () => {
    const changed = uploaded(look, ['submit', '{"answer":"2"}', 5, true]);
    const match = matchLedger(claim(changed, { sessionId: 'a' }), [session('a', recorded(look, submit), { taken: true })]);
    expect(match).toMatchObject({ verdict: 'partial', sid: 'a', confidence: 1, provenance: 'reported' });
    expect(match.differences).toEqual([{ kind: 'reward', index: 3, seq: 101, uploaded: 5, recorded: 1 }]);
    expect(matchLedger(claim(uploaded(look, submit), { sessionId: 'a' }), [session('a', recorded(look, submit))])).toMatchObject({
      verdict: 'verified',
      provenance: 'reported',
    });
  });

  it.each<[string, Call[], Call[], string[]]>([
    ['a reward that was none', [['look', '{}', 0]], [['look', '{}', null]], ['reward']],
    ['an end that was none', [['look', '{}', null, true]], [['look', '{}']], ['finished']],
    ['other arguments', [['look', '{"a":1}']], [['look', '{"a":2}']], ['missing_call']],
    ['another tool', [['look', '{}']], [['peek', '{}']], ['missing_call']],
    ['a call left out', [submit], [look, submit], ['extra_call']],
    ['a call made up', [look, ['cheat', '{}', 9], submit], [look, submit], ['missing_call']],
    ['no calls at all', [], [submit], ['extra_call']],
  ])('a named session with %s is partial', (_, claimed, real, kinds) => {
    const match = matchLedger(claim(uploaded(...claimed), { sessionId: 'a' }), [session('a', recorded(...real))]);
    expect(match.verdict).toBe('partial');
    expect(match.differences.map(({ kind }) => kind)).toEqual(kinds);
  });

  it('compares the named session’s environment and task too', () => {
    const calls = uploaded(submit);
    const differences = (rest: Partial<LedgerSession>) =>
      matchLedger(claim(calls, { sessionId: 'a' }), [session('a', recorded(submit), rest)]).differences.map(({ kind }) => kind);
    expect(differences({ environment: 'acme/other' })).toEqual(['environment']);
    expect(differences({ taskIndex: 8 })).toEqual(['task']);
    expect(differences({ split: 'test' })).toEqual(['task']);
    expect(differences({ environment: null, taskIndex: null })).toEqual([]);
  });

  it('takes the nearest of several that agree, and is the less sure the closer the next is', () => {
    const at = (sid: string, before: number) => session(sid, recorded(look, submit), { lastCallAt: NOW - before });
    const sure = (...sessions: LedgerSession[]) => matchLedger(claim(uploaded(look, submit)), sessions);
    expect(sure(at('far', 10_000), at('near', 1_000))).toMatchObject({
      verdict: 'verified',
      sid: 'near',
      confidence: expect.closeTo(0.86, 9),
    });
    expect(sure(at('b', 1_000), at('a', 1_000))).toMatchObject({ sid: 'a', confidence: 0.5 });
    expect(sure(at('now', 0), at('far', 10_000)).confidence).toBe(0.9);
    // A sibling that has its rollout already is none any more.
    expect(sure({ ...at('near', 1_000), taken: true }, at('far', 10_000))).toMatchObject({ sid: 'far', confidence: 1 });
  });

  it('allows a session that is still open, but none of another day, environment or task', () => {
    const verdict = (rest: Partial<LedgerSession>) => matchLedger(claim(uploaded(submit)), [session('a', recorded(submit), rest)]).verdict;
    expect(verdict({ lastCallAt: NOW + 60_000 })).toBe('verified');
    expect(verdict({ lastCallAt: NOW - 25 * 3_600_000 })).toBe('unverified');
    expect(verdict({ environment: 'acme/other' })).toBe('unverified');
    expect(verdict({ taskIndex: 8 })).toBe('unverified');
    expect(verdict({ taskIndex: null })).toBe('verified');
    const bySpec = claim(uploaded(submit), { taskIndex: null, taskKey: 'spec:acme/math:aa' });
    const other = (taskKey: string) => matchLedger(bySpec, [session('a', recorded(submit), { taskIndex: null, taskKey })]).verdict;
    expect([other('spec:acme/math:bb'), other('spec:acme/math:aa'), other('index:acme/math:train:7')]).toEqual([
      'unverified',
      'verified',
      'verified',
    ]);
  });

  it('is partial, unsure, when half of the calls agree, and never on the first step alone', () => {
    const calls = uploaded(look, ['a', '{}'], ['b', '{}'], submit);
    expect(matchLedger(claim(calls), [session('s', recorded(look, ['a', '{}'], ['c', '{}'], submit))])).toMatchObject({
      verdict: 'partial',
      sid: 's',
      confidence: 0.375,
      provenance: 'inferred',
    });
    expect(matchLedger(claim(calls), [session('s', recorded(look))])).toMatchObject({ verdict: 'unverified', sid: null, calls: [] });
  });

  it('finds nothing for a rollout without calls or candidates', () => {
    expect(matchLedger(claim([]), [session('a', recorded(submit))]).verdict).toBe('unverified');
    expect(matchLedger(claim(uploaded(submit), { sessionId: 'gone' }), []).verdict).toBe('unverified');
    expect(matchLedger(claim([], { sessionId: 'a' }), [session('a', [])]).verdict).toBe('verified');
  });

  it('does not compare the result of a call whose result was lost', () => {
    const [only] = uploaded(['submit', '{"answer":"2"}']);
    expect(matchLedger(claim([{ ...only!, hasResult: false }]), [session('a', recorded(submit))]).verdict).toBe('verified');
  });

  it('verifies any episode against its own ledger with retries and a longer tail, and names at most 100 differences', () => {
    const call = fc.tuple(fc.constantFrom('a', 'b'), fc.constantFrom('{}', '{"x":1}'), fc.constantFrom(null, 0, 1), fc.boolean());
    fc.assert(
      fc.property(fc.array(call, { minLength: 1, maxLength: 12 }), fc.array(fc.nat(2), { minLength: 12 }), (calls, retries) => {
        const ledger = recorded(...(calls as Call[]).flatMap((one, at) => Array<Call>(1 + retries[at]!).fill(one)), ['tail', '{}']);
        const match = matchLedger(claim(uploaded(...(calls as Call[]))), [session('s', ledger)]);
        expect(match.verdict).toBe('verified');
        expect(match.calls.map(({ index }) => index)).toEqual(calls.map((_, at) => 2 * at + 1));
        expect(new Set(match.calls.map(({ ledgerSeq }) => ledgerSeq)).size).toBe(calls.length);
      }),
    );
    const many = Array<Call>(500).fill(['a', '{}', 1]);
    const match = matchLedger(claim(uploaded(...many), { sessionId: 's' }), [session('s', recorded(submit))]);
    expect(match.differences).toHaveLength(MAX_DIFFERENCES);
  });

  it('stays fast on ten thousand calls', () => {
    const calls = Array.from({ length: 10_000 }, (_, at): Call => ['a', `{"x":${at % 7}}`]);
    const startedAt = cpuTime();
    const match = matchLedger(claim(uploaded(...calls)), [session('s', recorded(...calls.toReversed()))]);
    expect(match.verdict).not.toBe('verified');
    expect(cpuTime() - startedAt).toBeLessThan(3_000);
  });

  it('stays fast on very many equal calls, also when their rewards differ or most are missing', () => {
    const sent = (count: number, reward: number) => claim(Array(count).fill(uploaded(['a', '', reward])[0]), { sessionId: 's' });
    const known = (count: number) => [session('s', Array(count).fill(recorded(['a', '', 1])[0]))];
    const startedAt = cpuTime();
    expect(matchLedger(sent(10_000, 5), known(20_000))).toMatchObject({ verdict: 'partial', calls: { length: 10_000 } });
    expect(matchLedger(sent(150_000, 1), known(10))).toMatchObject({ verdict: 'partial', calls: { length: 10 } });
    expect(cpuTime() - startedAt).toBeLessThan(5_000);
  });
});
