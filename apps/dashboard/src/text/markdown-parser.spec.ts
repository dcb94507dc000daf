import { afterEach, expect, test, vi } from 'vitest';
import { htmlOf } from './markdown-parser.ts';

const of = (unit: string, length = 60_000): string => unit.repeat(length / unit.length);

afterEach(() => void vi.useRealTimers());

test.each(['**a', '(*a ', '**a* ', '[*a](', '(~a ', '!'])('60 kB of %j hold nobody up: they are shown as they were written', (unit) => {
  const started = performance.now();
  const html = htmlOf(of(unit));
  // Seconds to minutes without a bound.
  expect(performance.now() - started).toBeLessThan(1_500);
  expect(html).toBe(`<pre><code>${of(unit)}</code></pre>`);
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
