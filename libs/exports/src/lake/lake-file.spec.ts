import { describe, expect, test } from 'vitest';
import { LAKE_COLUMNS, lakeKey } from './lake-file.ts';

const run = (name: string) => ({ id: '00000000-0000-4000-8000-000000000001', name });

describe('keys of the lake', () => {
  test.each([
    ['My Run / 2', 'my-run-2-'],
    ['é "q" ../..', 'e-q-'],
    ['\u202e字', ''],
    ['x'.repeat(10_000), `${'x'.repeat(60)}-`],
  ])('the name %j cannot leave its folder', (name, slug) => {
    const key = lakeKey({ org: 'acme', run: run(name), step: 7, part: 3 });
    expect(key).toBe(`lake/org=acme/run=${slug}00000000-0000-4000-8000-000000000001/step=7/part-00003.parquet`);
  });

  test('a step that is not known is null to readers, and an organisation is escaped', () => {
    expect(lakeKey({ org: 'a/b', run: run('r'), step: null, part: 0 })).toContain('/org=a%2Fb/');
    expect(lakeKey({ org: 'a', run: run('r'), step: null, part: 0 })).toContain('/step=__HIVE_DEFAULT_PARTITION__/');
  });

  test('the longest names of organisations fit into a segment of 240 bytes, and stay different', () => {
    const ownerOf = (org: string) => lakeKey({ org, run: run('r'), step: 0, part: 0 }).split('/')[1]!;
    expect(ownerOf('字'.repeat(24))).toBe(`org=${encodeURIComponent('字'.repeat(24))}`);
    const owners = ['字', '語'].map((last) => ownerOf('字'.repeat(99) + last));
    for (const owner of owners) {
      expect(owner.length).toBeLessThanOrEqual(240);
      expect(decodeURIComponent(owner)).toMatch(/^org=字{20,}-[0-9a-f]{16}$/);
    }
    expect(owners[0]).not.toBe(owners[1]);
  });

  test('what is in the path is not in the file', () => {
    expect(LAKE_COLUMNS.map(({ name }) => name).filter((name) => ['org', 'run', 'step'].includes(name))).toEqual([]);
  });
});
