import { expect, test } from 'vitest';
import type { Pod } from './pod.ts';
import { viewOf } from './pod-view.ts';

const pod = (status: Pod['status'], metadata: Partial<Pod['metadata']> = {}): Pod => ({
  metadata: { name: 'palestra-1', uid: 'u', labels: { 'palestra.dev/instance': '1', 'palestra.dev/version': 'v' }, ...metadata },
  spec: { containers: [{ ports: [{ containerPort: 8_000 }], resources: { limits: { memory: '128Mi' } } }] },
  status: status!,
});
const container = (state: object) => [{ name: 'server', image: 'x', state }];

test('an instance runs when its container runs and has an address', () => {
  const running = container({ running: { startedAt: '2026-01-01T00:00:00Z' } });
  expect(viewOf(pod({ phase: 'Running', podIP: '10.1.2.3', containerStatuses: running }))).toEqual({
    id: '1',
    versionId: 'v',
    state: 'running',
    endpoint: 'http://10.1.2.3:8000',
    exit: null,
    startedAt: new Date('2026-01-01T00:00:00Z'),
    restarts: 0,
  });
  expect(viewOf(pod({ phase: 'Running', podIP: 'fd00::1', containerStatuses: running })).endpoint).toBe('http://[fd00::1]:8000');
  expect(viewOf(pod({ phase: 'Running', containerStatuses: running }))).toMatchObject({ state: 'starting', endpoint: null });
});

test.each([
  [
    'OOMKilled',
    { terminated: { exitCode: 137, reason: 'OOMKilled' } },
    'The server used more than its 128 MB of memory and was killed (status 137).',
  ],
  ['a signal', { terminated: { exitCode: 139, reason: 'Error' } }, 'The server was ended by signal 11 (status 139).'],
  ['a status', { terminated: { exitCode: 1, reason: 'Error', message: 'boom\n' } }, 'The server ended with status 1. boom'],
  ['no program', { terminated: { exitCode: 128, reason: 'StartError' } }, /^The server could not be started \(status 128\)\. Its program/],
  [
    'no image',
    { waiting: { reason: 'ImagePullBackOff', message: 'denied' } },
    /^The node cannot get the image \(ImagePullBackOff: denied\)/,
  ],
])('an instance that ended by %s says so', (_name, state, reason) => {
  const view = viewOf(pod({ phase: 'waiting' in state ? 'Pending' : 'Failed', containerStatuses: container(state) }));
  expect(view).toMatchObject({ state: 'exited', endpoint: null });
  expect(view.exit!.reason).toMatch(reason);
});

test('an instance that waits says why, and the first failure of a pull is no end', () => {
  const message = '0/3 nodes are available: 3 Insufficient cpu.';
  const unschedulable = pod({
    phase: 'Pending',
    conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }],
  });
  expect(viewOf(unschedulable)).toMatchObject({ state: 'starting', waiting: `No node has room for it: ${message}` });
  expect(
    viewOf(pod({ phase: 'Pending', containerStatuses: container({ waiting: { reason: 'ErrImagePull', message: 'timeout' } }) })),
  ).toMatchObject({
    state: 'starting',
    waiting: 'The node cannot get the image: timeout',
  });
  expect(viewOf(pod({ phase: 'Pending' }))).not.toHaveProperty('waiting');
});

test('an instance whose pod is being deleted, evicted or lost has ended', () => {
  expect(viewOf(pod({ phase: 'Running' }, { deletionTimestamp: '2026-01-01T00:00:00Z' }))).toMatchObject({ state: 'exited' });
  expect(viewOf(pod({ phase: 'Failed', reason: 'Evicted', message: 'low on disk' })).exit?.reason).toBe(
    'The node evicted the pod. low on disk',
  );
});
