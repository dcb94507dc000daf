import { expect, test } from 'vitest';
import type { BuildFailure } from '../../docker/build/build-output.ts';
import type { ContainerStatus, Pod } from '../instance/pod.ts';
import { assertBuilds, buildEnd, exposedPort } from './build-end.ts';

const LIMITS = { seconds: 60, memoryMb: 512, maxBytes: 2 ** 30, network: true };
const FAILURE: BuildFailure = { message: 'exit code: 1', step: '2/2: RUN make', line: 3, isKilled: false };
const DIGEST = `sha256:${'1'.repeat(64)}`;

const podOf = (status: Pod['status']): Pod => ({ metadata: { name: 'build', uid: '1' }, spec: { containers: [] }, status: status! });
const state = (name: string, of: ContainerStatus['state']): ContainerStatus => ({ name, image: 'builder', state: of! });
const ended = (terminated: NonNullable<ContainerStatus['state']>['terminated']) =>
  podOf({ phase: 'Failed', containerStatuses: [state('build', { terminated: terminated! })] });

test('a build that ended well says the digest', () => {
  expect(buildEnd(ended({ exitCode: 0, message: `${DIGEST}\n` }), FAILURE, LIMITS)).toBe(DIGEST);
  expect(() => buildEnd(ended({ exitCode: 0 }), FAILURE, LIMITS)).toThrow(/without the digest/);
});

test('every other end says why', () => {
  const failing = (pod: Pod, failure = FAILURE) => {
    try {
      return buildEnd(pod, failure, LIMITS);
    } catch (error) {
      const { code, message, line } = error as { code: string; message: string; line: number | null };
      return [code, message, line];
    }
  };
  expect(failing(ended({ exitCode: 1 }))).toEqual(['build_failed', 'The build failed in the step 2/2: RUN make: exit code: 1', 3]);
  expect(failing(ended({ exitCode: 1, reason: 'OOMKilled' }))[1]).toMatch(/ran out of memory: a build has 512 MB/);
  const push = { message: 'failed to push registry.example/acme: denied', step: null, line: 9, isKilled: false };
  expect(failing(ended({ exitCode: 1 }), push)).toEqual(['build_failed', expect.stringMatching(/^The registry did not take/), 9]);
  const evicted = podOf({ phase: 'Failed', reason: 'Evicted', message: 'Usage of EmptyDir volume "state" exceeds the limit.' });
  expect(failing(evicted)[1]).toMatch(/exceeds the limit\. Write and install less/);
  expect(failing(podOf({ phase: 'Failed', reason: 'DeadlineExceeded' }))[0]).toBe('build_timeout');
  expect(failing(podOf({ phase: 'Failed', reason: 'NodeLost' }))[1]).toMatch(/NodeLost/);
});

test('what keeps a build from its beginning', () => {
  const init = (of: ContainerStatus['state']) => podOf({ phase: 'Pending', initContainerStatuses: [state('context', of)] });
  expect(assertBuilds(init({ running: {} }))).toBeNull();
  expect(() => assertBuilds(init({ waiting: { reason: 'ImagePullBackOff', message: 'no such image' } }))).toThrow(
    /no such image.*PALESTRA_KUBERNETES_BUILDER_IMAGE/,
  );
  expect(() => assertBuilds(init({ terminated: { exitCode: 1, message: 'tar: short read' } }))).toThrow(/did not reach .*short read/);
  const condition = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/1 nodes are available' };
  expect(assertBuilds(podOf({ phase: 'Pending', conditions: [condition] }))).toBe(
    'No node has room for the build: 0/1 nodes are available',
  );
});

test('the port is the one that the last stage exposes', () => {
  expect(exposedPort('FROM a AS b\nEXPOSE 1\nFROM b\nexpose 8000/tcp\n')).toBe(8_000);
  expect(() => exposedPort('FROM a\nEXPOSE 1 2\n')).toThrow(/several ports \(1, 2\)/);
  expect(() => exposedPort('FROM a\nEXPOSE $PORT\n')).toThrow(/exposes no port/);
});
