import { expect, test } from 'vitest';
import { isAhead, newsOf } from './news.ts';

const key = ({ id }: { id: string }) => id;
const row = (id: string, mean: number) => ({ id, mean });
const shown = [row('a', 0.5), row('b', 1)];

test('rows that came are counted, wherever they stand', () => {
  expect(newsOf(shown, [row('c', 0), ...shown, row('d', 0)], true, key)).toEqual({ fresh: 2, changed: false });
});

test('another order is no news, another figure is, and so is a row that went', () => {
  expect(newsOf(shown, shown.toReversed(), true, key)).toEqual({ fresh: 0, changed: false });
  expect(newsOf(shown, [row('a', 0.5), row('b', 0.75)], true, key)).toEqual({ fresh: 0, changed: true });
  expect(newsOf(shown, [row('a', 0.5)], true, key)).toEqual({ fresh: 0, changed: true });
});

test('of a longer list the rest is not looked at, and counts as changed', () => {
  expect(newsOf([...shown, row('z', 1)], shown, false, key)).toEqual({ fresh: 0, changed: true });
});

test('versions are compared as numbers, and a list that is not read is behind nothing', () => {
  expect([isAhead('10', '9'), isAhead('9', '9'), isAhead('9', '10'), isAhead('9', undefined), isAhead('9', null)]).toEqual([
    true,
    false,
    false,
    false,
    false,
  ]);
});
