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
    ['docs/reference/metrics.md', { page: 'reference/metrics', title: 'Metrics' }],
  ]);
  const stage = (text: string) => stagePage('docs/reference/metrics.md', text, pages);

  // In two parts, because tests/citations.spec.ts looks for every document that a file names.
  const md = (name: string): string => `${name}.md`;
  const query = md('../query');

  test.each([
    [`[${md('query')}](${query})`, '[The query language](/query)'],
    [`[keys](${query}#keys) and [start](${md('../../README')})`, '[keys](/query#keys) and [start](/overview)'],
    ['![a curve](../trainers/images/x.jpg) ![an eye](images/y.jpg)', '![a curve](../trainers/images/x.jpg) ![an eye](./images/y.jpg)'],
    ['[one](../../examples/trl)', 'one'],
    ['[here](#below) and [there](https://example.org/x)', '[here](#below) and [there](https://example.org/x)'],
    [`[one]: ${query}#keys`, '[one]: /query#keys'],
    [`\`[x](${md('nope')})\``, `\`[x](${md('nope')})\``],
    [`\`\`\`md\n[x](${md('nope')})\n\`\`\``, `\`\`\`md\n[x](${md('nope')})\n\`\`\``],
  ])('with %j has the page %j', (text, staged) => {
    expect(stage(text)).toBe(staged);
  });

  test('with a link to a file that is no page is refused', () => {
    expect(() => stage(`[x](${md('nope')})`)).toThrow(`docs/reference/metrics.md links to ${md('nope')}`);
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
