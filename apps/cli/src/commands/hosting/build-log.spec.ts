import { expect, test } from 'vitest';
import { contextOf } from './build-log.ts';

const numbered = (number: number, text: string) => ({
  number,
  line: { seq: number, source: 's', at: '', stream: 'stdout' as const, severity: 'info' as const, text },
});

test('the line that failed is marked, and hostile text and colours are removed', () => {
  expect(
    contextOf([numbered(9, '\u001b[31mCollecting\u001b[0m x'), numbered(10, 'ERROR: no x\u0007\rdone'), numbered(11, '')], 10),
  ).toEqual(['   9 | Collecting x', '> 10 | ERROR: no x  done', '  11 |']);
});
