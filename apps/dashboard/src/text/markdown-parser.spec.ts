import { afterEach, expect, test, vi } from 'vitest';
import { htmlOf } from './markdown-parser.ts';

const of = (unit: string, length = 60_000): string => unit.repeat(length / unit.length);

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

test.each(['**a', '(*a ', '**a* ', '[*a](', '(~a ', '!'])('60 kB of %j hold nobody up: they are shown as they were written', (unit) => {
  // A clock that goes on by a millisecond whenever it is looked at, which is before every piece.
  let now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => (now += 1));
  expect(htmlOf(of(unit))).toBe(`<pre><code>${of(unit)}</code></pre>`);
  expect(now).toBe(302);
});

test('long ordinary texts are rendered', () => {
  // However slow the machine is that this runs on.
  vi.useFakeTimers({ toFake: ['performance'] });
  const paragraph = 'Some **bold** text with `code`, a_name_in_words and a [link](https://example.org/) in it.';
  expect(htmlOf(of(`${paragraph}\n\n`)).match(/<strong>bold<\/strong>/g)).toHaveLength(Math.floor(60_000 / (paragraph.length + 2)));
  expect(htmlOf(of(`- ${paragraph}\n`)).match(/<li>/g)).toHaveLength(Math.floor(60_000 / (paragraph.length + 3)));
});

test('what is nested without end is shown as it was written', () => {
  expect(htmlOf('> '.repeat(500))).toBe(`<pre><code>${'&gt; '.repeat(500)}</code></pre>`);
});
