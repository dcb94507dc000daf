import { parseSearchWith, stringifySearchWith } from '@tanstack/react-router';
import { expect, test } from 'vitest';
import { readSearchValue } from './search.ts';

const parse = parseSearchWith(readSearchValue);
const stringify = stringifySearchWith(JSON.stringify, JSON.parse);

test('a quoted phrase of a link that another program wrote stays a phrase', () => {
  expect(parse(`?q=${encodeURIComponent('"file not found"')}`)).toEqual({ q: '"file not found"' });
  expect(parse('?q=1.0')).toEqual({ q: '1.0' });
});

test.each(['a b', '"file not found"', '123', '1.0', '1e5', 'true', 'null', '"x"', '"1"', '{"a":1}', '"', '50% #1 & ü', 5, true])(
  'an address keeps %j',
  (value) => {
    expect(parse(stringify({ q: value }))).toEqual({ q: value });
  },
);
