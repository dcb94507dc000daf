import { expect, test } from 'vitest';
import { BoundedLabel, mergeMetrics } from './metrics.ts';

test('a label keeps its first values and replaces others by "other"', () => {
  const label = new BoundedLabel(2);
  expect(['a', 'b', 'c', 'a', 'd'].map((value) => label.of(value))).toEqual(['a', 'b', 'other', 'a', 'other']);
  expect(new BoundedLabel().of('x'.repeat(10_000))).toBe('other');
});

test('the metrics of two processes keep the samples of a metric together', () => {
  const ours = '# HELP a of a\n# TYPE a counter\na 1\n\n# HELP b of b\n# TYPE b gauge\n';
  const theirs = '# HELP b of b\n# TYPE b gauge\nb{process="worker"} 2\n\n# HELP c of c\n# TYPE c gauge\nc{process="worker"} 3\n';
  expect(mergeMetrics(ours, theirs)).toBe(
    '# HELP a of a\n# TYPE a counter\na 1\n\n# HELP b of b\n# TYPE b gauge\nb{process="worker"} 2\n\n# HELP c of c\n# TYPE c gauge\nc{process="worker"} 3\n',
  );
  expect(mergeMetrics(ours, '')).toBe(ours);
});
