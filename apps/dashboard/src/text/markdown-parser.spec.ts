import { afterEach, expect, test, vi } from 'vitest';
import { htmlOf } from './markdown-parser.ts';

const repeat = (unit: string, length = 60_000): string => unit.repeat(length / unit.length);

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

test.each(['**a', '(*a ', '**a* ', '[*a](', '(~a ', '!'])('60 kB of %j do not block the page: they are shown unformatted', (unit) => {
  // A clock that advances by a millisecond at every read, which happens before every token.
  let now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => (now += 1));
  expect(htmlOf(repeat(unit)).html).toBe(`<pre><code>${repeat(unit)}</code></pre>`);
  expect(now).toBe(302);
});

test('renders long ordinary texts', () => {
  // Independent of the speed of the machine.
  vi.useFakeTimers({ toFake: ['performance'] });
  const paragraph = 'Some **bold** text with `code`, a_name_in_words and a [link](https://example.org/) in it.';
  expect(htmlOf(repeat(`${paragraph}\n\n`)).html.match(/<strong>bold<\/strong>/g)).toHaveLength(
    Math.floor(60_000 / (paragraph.length + 2)),
  );
  expect(htmlOf(repeat(`- ${paragraph}\n`)).html.match(/<li>/g)).toHaveLength(Math.floor(60_000 / (paragraph.length + 3)));
});

test('shows deeply nested text unformatted', () => {
  expect(htmlOf('> '.repeat(500)).html).toBe(`<pre><code>${'&gt; '.repeat(500)}</code></pre>`);
});
