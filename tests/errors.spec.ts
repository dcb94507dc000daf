import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { errorCatalogue } from '@palestra/protocol';
import { renderErrors } from '../scripts/errors-doc.mjs';

/** Every public error code stands once in the catalogue, once in docs/errors.md, and in at least one place that raises it. */
const root = path.resolve(import.meta.dirname, '..');
const codes = Object.keys(errorCatalogue);

function textOf(folders: string[], wanted: (file: string) => boolean): string {
  return folders
    .flatMap((folder) =>
      readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
        .filter((file) => /\.tsx?$/.test(file) && !/node_modules|[/\\]dist[/\\]|generated/.test(file) && wanted(file))
        .map((file) => readFileSync(path.join(root, folder, file), 'utf8')),
    )
    .join('\n');
}
const quoted = (text: string) => (code: string) => !new RegExp(`['"\`]${code}['"\`]`).test(text);

describe('the error catalogue', () => {
  test('is what docs/errors.md says', () => {
    expect(readFileSync(path.join(root, 'docs/errors.md'), 'utf8')).toBe(renderErrors(errorCatalogue));
  });

  test('has no code that nothing raises', () => {
    const sources = textOf(['apps', 'libs'], (file) => !file.includes('.spec.') && !file.endsWith('error-catalogue.ts'));
    expect(codes.filter(quoted(sources))).toEqual([]);
  });

  test('has no code that no test knows', () => {
    const specs = textOf(['apps', 'libs', 'tests'], (file) => file.includes('.spec.') && !file.endsWith('errors.spec.ts'));
    expect(codes.filter(quoted(specs))).toEqual([]);
  });
});
