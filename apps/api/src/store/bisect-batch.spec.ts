import { BlobError } from '@palestra/blobs';
import { PalestraError } from '@palestra/protocol';
import { describe, expect, it } from 'vitest';
import { bisectBatch, isInputFault, isItemFault } from './bisect-batch.ts';

const coded = (code: string) => Object.assign(new Error(code), { code });

describe('an error', () => {
  it.each([coded('23514'), coded('22003'), coded('54000'), coded('21000'), new TypeError('x'), new BlobError('not_found', 'x')])(
    '%s is a fault of the input',
    (error) => expect(isInputFault(error)).toBe(true),
  );

  it.each([
    coded('40P01'),
    coded('57014'),
    coded('42703'),
    coded('ECONNREFUSED'),
    new BlobError('unavailable', 'x'),
    new DOMException('x', 'TimeoutError'),
    new PalestraError('database_unavailable'),
  ])('%s is not a fault of the input', (error) => expect(isInputFault(error)).toBe(false));
});

describe('background work', () => {
  const timeout = coded('57014');
  const repeated = new PalestraError('database_unavailable', { cause: timeout });
  it.each([coded('23514'), timeout, repeated, coded('XX001')])('leaves an item after %s', (error) => expect(isItemFault(error)).toBe(true));

  it.each([coded('40P01'), coded('57P01'), coded('53100'), coded('ECONNREFUSED'), new PalestraError('database_unavailable')])(
    'does not leave an item after %s',
    (error) => expect(isItemFault(error)).toBe(false),
  );
});

describe('a batch with faulty members', () => {
  const work = (faulty: readonly number[], error = coded('22003')) => {
    const done: number[] = [];
    const left: number[] = [];
    const run = (members: readonly number[]) =>
      bisectBatch(
        members,
        async (some) => {
          if (some.some((member) => faulty.includes(member))) throw error;
          done.push(...some);
        },
        (member) => void left.push(member),
      );
    return { done, left, run };
  };

  it.each([[[]], [[0]], [[6]], [[2, 3]], [[0, 1, 2, 3, 4, 5, 6]]])(
    'with the faulty members %j all others are processed once and in order',
    async (faulty) => {
      const { done, left, run } = work(faulty);
      const members = [0, 1, 2, 3, 4, 5, 6];
      await run(members);
      expect(left).toEqual(faulty);
      expect(done).toEqual(members.filter((member) => !faulty.includes(member)));
    },
  );

  it('stops with an error that is not a fault of the input', async () => {
    const { left, run } = work([3], coded('57P01'));
    await expect(run([1, 2, 3, 4])).rejects.toThrow('57P01');
    expect(left).toEqual([]);
  });
});
