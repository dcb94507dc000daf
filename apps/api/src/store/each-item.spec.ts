import { BlobError } from '@palestra/blobs';
import { PalestraError } from '@palestra/protocol';
import { expect, test } from 'vitest';
import { eachItem } from './each-item.ts';

const statement = (code: string) => Object.assign(new Error(`SQLSTATE ${code}`), { code });

/** Which of three items are worked on when the first one fails. */
async function worked(error: Error): Promise<number[]> {
  const done: number[] = [];
  const work = async (item: number) => {
    done.push(item);
    if (item === 1) throw error;
  };
  await expect(eachItem([1, 2, 3], undefined, work)).rejects.toBe(error);
  return done;
}

test('an item that fails keeps no other from the work', async () => {
  const late = new PalestraError('database_unavailable', { cause: statement('XX001') });
  for (const error of [new Error('any'), statement('22P02'), statement('57014'), late]) expect(await worked(error)).toEqual([1, 2, 3]);
});

test('while PostgreSQL or the object store is away no other item is tried', async () => {
  const away = new PalestraError('database_unavailable', { cause: statement('57P01') });
  for (const error of [statement('08006'), away, new BlobError('unavailable', 'away')]) expect(await worked(error)).toEqual([1]);
});
