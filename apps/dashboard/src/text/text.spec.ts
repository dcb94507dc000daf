import { describe, expect, test } from 'vitest';
import { parseAnsi } from './ansi.ts';
import { markInvisible, splitInvisible } from './invisible.ts';

describe('terminal text', () => {
  test('SGR colours become classes and end with reset', () => {
    expect(parseAnsi('a\u001b[1;31mred\u001b[0m b')).toEqual([
      { text: 'a', className: '' },
      { text: 'red', className: 'ansi-bold ansi-1' },
      { text: ' b', className: '' },
    ]);
  });
  test('256 and true colours are skipped, not misread as others', () => {
    expect(parseAnsi('\u001b[38;5;31mx\u001b[38;2;1;2;31my')).toEqual([
      { text: 'x', className: '' },
      { text: 'y', className: '' },
    ]);
  });
  test.each(['\u001b]8;;https://evil.example\u0007click\u001b]8;;\u0007', '\u001b]52;c;ZXZpbA==\u001b\\click', '\u001b[2J\u001b[Hclick'])(
    'drops %j but its text',
    (input) => {
      expect(parseAnsi(input).map((part) => part.text)).toEqual(['click']);
    },
  );
});

describe('invisible characters', () => {
  test('bidi overrides and zero-width spaces are shown', () => {
    expect(splitInvisible('a\u202eb\u200b')).toEqual([
      { text: 'a', mark: false },
      { text: 'RLO', mark: true },
      { text: 'b', mark: false },
      { text: 'ZWSP', mark: true },
    ]);
  });
  test('tag characters are shown, emoji sequences, tabs and newlines stay', () => {
    expect(markInvisible('\u{e0041}')).toBe('⟦U+E0041⟧');
    expect(markInvisible('👩\u200d🚀\t\n')).toBe('👩\u200d🚀\t\n');
  });
});
