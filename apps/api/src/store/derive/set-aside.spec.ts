import { BlobError } from '@palestra/blobs';
import { PalestraError } from '@palestra/protocol';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createLogger } from '../../platform/telemetry/logger.ts';
import { Metrics } from '../../platform/telemetry/metrics.ts';
import { everyStage, isOwnFault, SetAside, withoutFaulty } from './set-aside.ts';

const coded = (code: string) => Object.assign(new Error(code), { code });

describe('a fault', () => {
  it.each([coded('23514'), coded('22003'), coded('54000'), coded('21000'), new TypeError('x'), new BlobError('not_found', 'x')])(
    '%s is of what was worked on',
    (error) => expect(isOwnFault(error)).toBe(true),
  );

  it.each([
    coded('40P01'),
    coded('57014'),
    coded('42703'),
    coded('ECONNREFUSED'),
    new BlobError('unavailable', 'x'),
    new DOMException('x', 'TimeoutError'),
    new PalestraError('database_unavailable'),
  ])('%s is not', (error) => expect(isOwnFault(error)).toBe(false));
});

describe('work with faulty members', () => {
  const work = (faulty: readonly number[], error = coded('22003')) => {
    const done: number[] = [];
    const left: number[] = [];
    const run = (members: readonly number[]) =>
      withoutFaulty(
        members,
        async (some) => {
          if (some.some((member) => faulty.includes(member))) throw error;
          done.push(...some);
        },
        (member) => void left.push(member),
      );
    return { done, left, run };
  };

  it.each([[[]], [[0]], [[6]], [[2, 3]], [[0, 1, 2, 3, 4, 5, 6]]])('%j does the rest, once and in order', async (faulty) => {
    const { done, left, run } = work(faulty);
    const members = [0, 1, 2, 3, 4, 5, 6];
    await run(members);
    expect(left).toEqual(faulty);
    expect(done).toEqual(members.filter((member) => !faulty.includes(member)));
  });

  it('ends with a fault that is of none of them', async () => {
    const { left, run } = work([3], coded('57P01'));
    await expect(run([1, 2, 3, 4])).rejects.toThrow('57P01');
    expect(left).toEqual([]);
  });
});

it('stages run after one that failed, which is told', async () => {
  const ran: number[] = [];
  const stage = (number: number, more: boolean) => async () => (ran.push(number), more);
  expect(await everyStage(stage(1, false), stage(2, false))).toBe(false);
  expect(await everyStage(stage(1, true), stage(2, false))).toBe(true);
  const failing = () => Promise.reject(new Error('first'));
  await expect(everyStage(stage(3, true), failing, stage(4, false), () => Promise.reject(new Error('second')))).rejects.toThrow('first');
  expect(ran).toEqual([1, 2, 1, 2, 3, 4]);
});

describe('what is set aside', () => {
  afterEach(() => void vi.useRealTimers());

  it('comes back after its time, by kind', () => {
    vi.useFakeTimers();
    const aside = new SetAside(new Metrics(), createLogger('silent'));
    aside.add('rollout', '7', new Error('x'));
    aside.add('step', '1 1 7', new Error('x'));
    expect([aside.members('rollout'), aside.members('run'), aside.members('step')]).toEqual([['7'], [], ['1 1 7']]);
    vi.advanceTimersByTime(11 * 60_000);
    expect([aside.members('rollout'), aside.members('step')]).toEqual([[], []]);
  });

  it('is bounded: beyond that the fault stops the work as it is', () => {
    const aside = new SetAside(new Metrics(), createLogger('silent'));
    for (let seq = 0; seq < 1_000; seq += 1) aside.add('rollout', String(seq), new Error('x'));
    expect(() => aside.add('rollout', 'one more', new Error('of too many'))).toThrow('of too many');
  });
});
