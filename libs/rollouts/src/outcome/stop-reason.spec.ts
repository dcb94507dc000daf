import { STOP_REASONS } from '@palestra/protocol';
import { describe, expect, it } from 'vitest';
import { normaliseRollout } from '../normalise.ts';
import { rollout, skyrlCall, skyrlStart } from '../raw-rollouts.fixture.ts';
import { canonicalStop, failureOfStop, type StopInput, stopReason, turnOfCall } from './stop-reason.ts';

const facts = (rest: Partial<StopInput>): StopInput => ({
  source: 'generic',
  raw: null,
  failureClass: null,
  isFinished: false,
  lastResultFinished: false,
  lastCallTurn: null,
  numTurns: null,
  ...rest,
});

describe('stopReason', () => {
  it.each(STOP_REASONS.filter((stop) => stop !== 'unknown'))('keeps the canonical %s', (raw) => {
    expect(stopReason(facts({ raw }))).toMatchObject({ stop: raw, provenance: 'reported' });
  });

  it.each([
    ['slime/miles', 'reached_terminal_state', 'finished', 'reported'],
    ['slime/miles', 'error', 'infra_error', 'inferred'],
    ['tinker', 'reached_terminal_state', 'finished', 'reported'],
    ['generic', 'stop', 'finished', 'reported'],
    ['generic', 'length', 'max_tokens', 'reported'],
    ['generic', 'weird', 'unknown', 'unknown'],
    ['generic', 'constructor', 'unknown', 'unknown'],
  ] as const)('%s: %s is %s', (source, raw, stop, provenance) => {
    expect(stopReason(facts({ source, raw }))).toMatchObject({ stop, provenance });
  });

  it('names the failure that it stands for, and no other', () => {
    for (const stop of STOP_REASONS) {
      const failureClass = failureOfStop(stop);
      if (failureClass !== null) expect(stopReason(facts({ failureClass })).stop).toBe(stop);
    }
    expect(STOP_REASONS.filter((stop) => failureOfStop(stop) !== null)).toEqual(['env_error', 'infra_error']);
  });

  it('takes the end from the messages where nothing usable is reported', () => {
    expect(stopReason(facts({ isFinished: true }))).toMatchObject({ stop: 'finished', provenance: 'parsed' });
    expect(stopReason(facts({ isFinished: true, raw: 'weird' }))).toMatchObject({ stop: 'finished', provenance: 'parsed' });
    expect(stopReason(facts({ isFinished: true, raw: 'max_turns' })).stop).toBe('max_turns');
    expect(stopReason(facts({ isFinished: true, raw: 'finished', failureClass: 'environment' }))).toMatchObject({ stop: 'env_error' });
    expect(canonicalStop(null)).toBeNull();
  });
});

/** SkyRL: t = turn of the last call, n = num_turns, M = the limit. */
describe('SkyRL’s stop reason', () => {
  const stopOf = (t: number, n: number, runMaxTurns: number | null, finished = false, maxTurns?: number) => {
    const messages = skyrlCall(0, t, 'submit', null, finished);
    const { stop, stopRaw, provenance } = normaliseRollout(rollout(skyrlStart(n), messages), { maxTurns }, { runMaxTurns });
    expect(stopRaw).toBe('finished');
    return [stop, provenance.stop.value];
  };

  it.each([
    ['the last result is finished', 2, 2, 10, true, 'finished', 'parsed'],
    ['t = n = M', 10, 10, 10, false, 'max_turns', 'inferred'],
    ['t = n < M', 4, 4, 10, false, 'context_length', 'inferred'],
    ['t < n < M', 3, 4, 10, false, 'no_tool_call', 'inferred'],
    ['t < n = M', 9, 10, 10, false, 'unknown', 'unknown'],
    ['no other rollout of the run is known: M = n', 4, 4, null, false, 'max_turns', 'inferred'],
    ['the call id is of no turn', 5, 4, 10, false, 'unknown', 'unknown'],
  ] as const)('%s', (_, t, n, limit, finished, stop, provenance) => {
    expect(stopOf(t, n, limit, finished)).toEqual([stop, provenance]);
  });

  it('believes a configured limit before the run’s largest number', () => {
    expect(stopOf(8, 8, 8, false, 10)).toEqual(['context_length', 'inferred']);
    expect(stopOf(8, 8, 20, false, 8)).toEqual(['max_turns', 'inferred']);
  });

  it('has no_tool_call, parsed, where no tool ran', () => {
    const result = normaliseRollout(rollout(skyrlStart(1, 'no_tool_call')), {}, { runMaxTurns: 10 });
    expect(result).toMatchObject({ stop: 'no_tool_call', reward: null, provenance: { stop: { value: 'parsed' } } });
  });

  it('does not know before the messages are here', () => {
    expect(normaliseRollout(rollout(skyrlStart(3)), {}, { runMaxTurns: 10 }).stop).toBe('unknown');
  });
});

describe('turnOfCall', () => {
  it('finds the turn of a recorded call id', () => {
    expect(turnOfCall('b488d0c6f7bb', 'submit', 4)).toBe(2);
    expect(turnOfCall('b488d0c6f7bb', 'submit', 4, 3)).toBeNull();
    expect(turnOfCall('b488d0c6f7bb', 'submit', 1)).toBeNull();
    expect(turnOfCall('', 'submit', 2)).toBeNull();
    expect(turnOfCall('toolu_01', 'submit', 2)).toBeNull();
  });
});
