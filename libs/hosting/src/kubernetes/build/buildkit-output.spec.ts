import { expect, test } from 'vitest';
import type { LogLine } from '../../provider/provider.port.ts';
import { BuildKitOutput } from './buildkit-output.ts';

/** The lines of a log, and why the build failed. */
function read(texts: readonly string[]) {
  const lines: LogLine[] = [];
  const output = new BuildKitOutput((line) => lines.push(line));
  for (const text of texts) output.push({ at: new Date(0), stream: 'stdout', text });
  output.end();
  return { lines, texts: lines.map(({ text }) => text), failure: output.failure };
}

const FAILED = 'process "/bin/sh -c pip install nothing" did not complete successfully: exit code: 1';

test('a failure names the step, and the line that complains, whatever other parts write between', () => {
  const { texts, lines, failure } = read([
    '#1 [internal] load build definition from .palestra.Dockerfile',
    '#1 DONE 0.0s',
    '',
    '#5 [build 2/3] RUN make',
    '#5 0.100 error: a warning of another step',
    '#6 [stage-1 2/4] RUN pip install nothing',
    '#6 0.412 ERROR: No matching distribution found for nothing',
    '#5 ...',
    '#6 0.500 you should upgrade',
    `#6 ERROR: ${FAILED}`,
    '#5 CANCELED',
    '------',
    ' > [stage-1 2/4] RUN pip install nothing:',
    `error: failed to solve: ${FAILED}`,
  ]);
  expect(failure).toEqual({ message: FAILED, step: '2/4: RUN pip install nothing', line: 6, isKilled: false });
  expect(texts[failure.line! - 1]).toContain('No matching distribution');
  expect(texts).not.toContain('');
  expect(lines.filter(({ stream }) => stream === 'stderr').map(({ text }) => text)).toEqual([
    `#6 ERROR: ${FAILED}`,
    `error: failed to solve: ${FAILED}`,
  ]);
});

test('without a cache a build goes on, and layers that come are no lines', () => {
  const layer = `sha256:${'0'.repeat(64)}`;
  const { texts, failure } = read([
    '#4 importing cache manifest from registry.example/acme:cache-1',
    '#4 ERROR: registry.example/acme:cache-1: not found',
    '#5 [1/2] FROM docker.io/library/python:3.12-slim',
    `#5 ${layer} 1.05MB / 3.10MB 0.2s`,
    `#5 extracting ${layer}`,
    '#5 DONE 1.2s',
    '#7 exporting to image',
    '#7 ERROR: failed to push registry.example/acme:build-1: unexpected status: 401 Unauthorized',
  ]);
  expect(texts).toHaveLength(5);
  expect(failure).toEqual({
    message: 'failed to push registry.example/acme:build-1: unexpected status: 401 Unauthorized',
    step: null,
    line: 5,
    isKilled: false,
  });
});

test('a step that was killed, an error before all steps, and no error at all', () => {
  expect(read(['#2 [2/2] RUN make', '#2 ERROR: process "make" did not complete successfully: exit code: 137']).failure).toMatchObject({
    step: '2/2: RUN make',
    isKilled: true,
  });
  expect(read(['error: failed to solve: dockerfile parse error on line 1']).failure).toEqual({
    message: 'dockerfile parse error on line 1',
    step: null,
    line: 1,
    isKilled: false,
  });
  expect(read(['could not connect to buildkitd']).failure).toMatchObject({ message: expect.stringContaining('last lines'), line: null });
});

test('a builder that does not start says why', () => {
  const { failure, texts } = read([
    'could not connect to unix:///run/user/1000/buildkit/buildkitd.sock after 50 trials',
    '========== log ==========',
    '[rootlesskit:parent] error: failed to setup UID/GID map: newuidmap 18 [0 1000 1 1 100000 65536] failed: Operation not permitted',
    '[rootlesskit:parent] error: child exited: exit status 1',
  ]);
  expect(failure.message).toMatch(/^BuildKit did not start \(failed to setup UID\/GID map: .*not permitted\)\. The operator/);
  expect(texts[failure.line! - 1]).toContain('failed to setup UID/GID map');
});
