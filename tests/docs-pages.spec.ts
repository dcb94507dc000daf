import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { apiPages } from '../apps/docs/scripts/api-pages.mjs';
import { stagePage } from '../apps/docs/scripts/pages.mjs';

/** How documents become pages of the documentation site. `npm run build` fails for dead links. */
describe('a document', () => {
  const pages = new Map([
    ['docs/query.md', { page: 'query', title: 'The query language' }],
    ['README.md', { page: 'overview', title: 'Palestra' }],
  ]);
  const stage = (text: string) => stagePage('docs/reference/metrics.md', text, pages);

  test.each([
    ['[query.md](../query.md)', '[The query language](/query)'],
    ['[keys](../query.md#keys) and [start](../../README.md)', '[keys](/query#keys) and [start](/overview)'],
    ['[here](#below) and [there](https://example.org/x.md)', '[here](#below) and [there](https://example.org/x.md)'],
    ['[one]: ../query.md#keys', '[one]: /query#keys'],
    ['`[query.md](../nope.md)`', '`[query.md](../nope.md)`'],
    ['```md\n[x](nope.md)\n```', '```md\n[x](nope.md)\n```'],
  ])('with %j has the page %j', (text, staged) => {
    expect(stage(text)).toBe(staged);
  });

  test('with a link to a file that is no page is refused', () => {
    expect(() => stage('[x](nope.md)')).toThrow('docs/reference/metrics.md links to nope.md');
  });
});

test('the API reference has every operation once', () => {
  const document = JSON.parse(readFileSync(path.resolve(import.meta.dirname, '../docs/openapi.json'), 'utf8')) as {
    paths: Record<string, Record<string, object>>;
  };
  const operations = Object.entries(document.paths).flatMap(([route, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${route}`),
  );
  const text = apiPages(document)
    .map((page) => page.text)
    .join('\n');
  const described = [...text.matchAll(/^`((?:GET|PUT|POST|PATCH|DELETE|HEAD) \S+)`$/gm)].map(([, operation]) => operation!);
  expect(described.toSorted()).toEqual(operations.toSorted());
});
