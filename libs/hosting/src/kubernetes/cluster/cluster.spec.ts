import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { Cluster } from './cluster.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'palestra-cluster-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** A kubeconfig whose token comes from a program that takes twenty seconds. */
const kubeconfig = path.join(folder, 'config');
writeFileSync(
  kubeconfig,
  JSON.stringify({
    clusters: [{ name: 'a', cluster: { server: 'https://127.0.0.1:1' } }],
    users: [
      {
        name: 'a',
        user: { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: 'sleep', args: ['20'], interactiveMode: 'Never' } },
      },
    ],
    contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
    'current-context': 'a',
  }),
);

test('a program that gives no token does not outlast the deadline, nor the signal of the caller', async () => {
  const cluster = new Cluster({ kubeconfig });
  const started = performance.now();
  await expect(cluster.request({ method: 'GET', path: '/', deadlineMs: 50 }, AbortSignal.timeout(60_000))).rejects.toMatchObject({
    code: 'engine_unavailable',
    message: expect.stringContaining('no answer in time'),
  });
  const aborted = cluster.stream({ method: 'GET', path: '/' }, AbortSignal.timeout(50));
  await expect(aborted).rejects.toThrow(expect.objectContaining({ name: 'TimeoutError' }));
  expect(performance.now() - started).toBeLessThan(15_000);
});
