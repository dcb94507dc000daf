import { expect, test } from 'vitest';
import { quantity, statsOf } from './pod-stats.ts';

test('reads quantities as metrics-server writes them', () => {
  const texts = ['12345678n', '250m', '2', '128Mi', '1048576', '1e3', 'much'];
  expect(texts.map(quantity)).toEqual([0.012345678, 0.25, 2, 134_217_728, 1_048_576, 1_000, 0]);
});

test('adds up the containers of a pod; without any nothing is known', () => {
  const usage = { cpu: '500m', memory: '64Mi' };
  expect(statsOf({ containers: [{ usage }, { usage }] })).toEqual({ cpus: 1, memoryMb: 128, pids: null });
  expect(statsOf({ containers: [] })).toBeNull();
});
