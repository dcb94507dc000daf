import { expect, test } from 'vitest';
import { isAhead, newsOf } from './news.ts';

const key = ({ id }: { id: string }) => id;
const row = (id: string, mean: number) => ({ id, mean });
const shown = [row('a', 0.5), row('b', 1)];

test('new rows are counted at any position', () => {
  expect(newsOf(shown, [row('c', 0), ...shown, row('d', 0)], true, key)).toEqual({ fresh: 2, changed: false });
});

test('a different figure or a removed row is a change; a different order is not', () => {
  expect(newsOf(shown, shown.toReversed(), true, key)).toEqual({ fresh: 0, changed: false });
  expect(newsOf(shown, [row('a', 0.5), row('b', 0.75)], true, key)).toEqual({ fresh: 0, changed: true });
  expect(newsOf(shown, [row('a', 0.5)], true, key)).toEqual({ fresh: 0, changed: true });
});

test('the unread rest of a longer list counts as changed', () => {
  expect(newsOf([...shown, row('z', 1)], shown, false, key)).toEqual({ fresh: 0, changed: true });
});

test('versions are compared as numbers, and a list without a version is current', () => {
  expect([isAhead('10', '9'), isAhead('9', '9'), isAhead('9', '10'), isAhead('9', undefined), isAhead('9', null)]).toEqual([
    true,
    false,
    false,
    false,
    false,
  ]);
});
