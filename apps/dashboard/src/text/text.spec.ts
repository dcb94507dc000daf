import { describe, expect, test } from 'vitest';
import { parseAnsi } from './ansi.ts';
import { markInvisible, splitInvisible } from './invisible.ts';
import { argumentsOf, parseJson, parseTree } from './json.ts';
import { chunkLongLines } from './long-lines.ts';
import { imagesOf, textOfParts, withoutImageNames } from './objects.ts';

describe('terminal text', () => {
  test('SGR colours become classes and end at a reset', () => {
    expect(parseAnsi('a\u001b[1;31mred\u001b[0m b')).toEqual([
      { text: 'a', className: '' },
      { text: 'red', className: 'ansi-bold ansi-1' },
      { text: ' b', className: '' },
    ]);
  });
  test('ignores 256-colour and true-colour codes', () => {
    expect(parseAnsi('\u001b[38;5;31mx\u001b[38;2;1;2;31my')).toEqual([
      { text: 'x', className: '' },
      { text: 'y', className: '' },
    ]);
  });
  test.each(['\u001b]8;;https://evil.example\u0007click\u001b]8;;\u0007', '\u001b]52;c;ZXZpbA==\u001b\\click', '\u001b[2J\u001b[Hclick'])(
    'keeps only the text of %j',
    (input) => {
      expect(parseAnsi(input).map((part) => part.text)).toEqual(['click']);
    },
  );
});

describe('invisible characters', () => {
  test('shows bidi overrides and zero-width spaces', () => {
    expect(splitInvisible('a\u202eb\u200b')).toEqual([
      { text: 'a', mark: false },
      { text: 'RLO', mark: true },
      { text: 'b', mark: false },
      { text: 'ZWSP', mark: true },
    ]);
  });
  test('shows tag characters and keeps emoji sequences, tabs and newlines', () => {
    expect(markInvisible('\u{e0041}')).toBe('⟦U+E0041⟧');
    for (const kept of ['👩\u200d🚀\t\n', '👩🏽\u200d🚀', '❤\ufe0f\u200d🔥', '1\ufe0f\u20e3', '葛\u{e0100}'])
      expect(markInvisible(kept)).toBe(kept);
  });
  test('shows characters that can hide bytes: variation selectors, fillers, joiners, annotations, separators', () => {
    expect(markInvisible('a\ufe00b\u{e0151}')).toBe('a⟦U+FE00⟧b⟦U+E0151⟧');
    expect(markInvisible('😀\ufe0f\u{e0151}\u{e0152}')).toBe('😀\ufe0f⟦U+E0151⟧⟦U+E0152⟧');
    for (const hidden of '\u034f\u115f\u1160\u17b4\u2028\u2029\u206a\u3164\uffa0\ufff9')
      expect(splitInvisible(hidden)).toMatchObject([{ mark: true }]);
  });
});

describe('untrusted JSON', () => {
  test('arguments keep their order and a key called __proto__', () => {
    expect(argumentsOf('{"b":"x","__proto__":1,"a":[1]}')).toEqual([
      ['b', 'x'],
      ['__proto__', '1'],
      ['a', '[1]'],
    ]);
    expect(argumentsOf('not json')).toBeNull();
    expect(Object.getPrototypeOf(parseJson('{"__proto__":{"x":1}}'))).toBeNull();
  });
  test('rejects a depth over 200, a length over 200 000, and scalars as trees', () => {
    expect(parseTree(`${'['.repeat(200)}${']'.repeat(200)}`)).toBeDefined();
    expect(parseTree(`${'['.repeat(201)}${']'.repeat(201)}`)).toBeUndefined();
    expect(parseTree(`{"a":"${'['.repeat(300)}"}`)).toBeDefined();
    expect(parseTree(`["${'x'.repeat(200_000)}"]`)).toBeUndefined();
    expect(parseTree('17')).toBeUndefined();
  });
});

test('splits lines over 10 000 characters between characters, without loss', () => {
  const long = '😀'.repeat(12_000);
  const chunks = chunkLongLines(`first\n${long}\nlast`, 10_001);
  expect(chunks.map(({ length }) => length)).toEqual([5, 10_000, 10_000, 4_000, 4]);
  expect(chunks.slice(1, 4).join('')).toBe(long);
});

test('replaces stored images, and reads the text of content lists', () => {
  const name = `${'a'.repeat(64)}.png`;
  expect(withoutImageNames(`see palestra-object:${name} and palestra-object:${name}`)).toBe('see [image 1] and [image 1]');
  expect(imagesOf('palestra-object:../../x.png')).toEqual([]);
  expect(textOfParts([{ type: 'text', text: 'hello' }, { type: 'image_url' }])).toBe('hello');
  expect(textOfParts([{ type: 'other' }])).toBeNull();
});
