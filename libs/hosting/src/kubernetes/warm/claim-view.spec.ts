import { expect, test } from 'vitest';
import type { Pod } from '../instance/pod.ts';
import { claimView } from './claim-view.ts';
import type { Claim } from './objects.ts';

const labels = { 'palestra.dev/instance': 'i', 'palestra.dev/version': 'v' };
const claim = (ready?: 'True' | 'False', more: Partial<Claim['metadata']> = {}): Claim => ({
  metadata: { name: 'palestra-i', uid: 'c', labels, ...more },
  status: {
    sandbox: { name: 'pod' },
    conditions: [
      { type: 'Suspended', status: 'True' },
      ...(ready ? [{ type: 'Ready', status: ready, reason: 'WarmPoolNotFound', message: 'no pool' }] : []),
    ],
  },
});
const pod: Pod = {
  metadata: { name: 'pod', uid: 'p' },
  spec: { containers: [{ ports: [{ containerPort: 8_000 }] }] },
  status: { phase: 'Running', podIP: '10.0.0.1', containerStatuses: [{ name: 'server', image: 'x', state: { running: {} } }] },
};

test('an instance runs when its claim is ready, and only then has an address', () => {
  expect(claimView(claim('True'), pod, null)).toMatchObject({
    id: 'i',
    versionId: 'v',
    state: 'running',
    endpoint: 'http://10.0.0.1:8000',
  });
  expect(claimView(claim('False'), pod, null)).toMatchObject({ state: 'starting', endpoint: null });
  // A probe that fails later does not take it away.
  expect(claimView(claim('False'), pod, 'p')).toMatchObject({ state: 'running', endpoint: 'http://10.0.0.1:8000' });
});

test('what it waits for is said', () => {
  expect(claimView(claim('False'), null, null).waiting).toBe('agent-sandbox has no pod for it yet (WarmPoolNotFound): no pool');
  expect(claimView(claim(), null, null).waiting).toMatch(/its controller runs/);
  const full = {
    ...pod,
    status: { conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/1 nodes' }] },
  };
  expect(claimView(claim('False'), full, null).waiting).toBe('No node has room for it: 0/1 nodes');
});

test('without the pod that it ran with it has ended', () => {
  for (const now of [null, { ...pod, metadata: { ...pod.metadata, uid: 'another' } }])
    expect(claimView(claim('True'), now, 'p')).toMatchObject({
      state: 'exited',
      endpoint: null,
      exit: { reason: expect.stringMatching(/gone/) },
    });
  expect(claimView(claim('True', { deletionTimestamp: 'now' }), pod, 'p')).toMatchObject({ state: 'exited' });
});
