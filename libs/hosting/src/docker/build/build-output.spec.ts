import { expect, test } from 'vitest';
import type { LogLine } from '../../provider/provider.port.ts';
import { BuildOutput } from './build-output.ts';

/** The lines of a log, and how the build ended. */
function read(events: readonly (object | string)[]) {
  const lines: LogLine[] = [];
  const output = new BuildOutput((line) => lines.push(line));
  for (const event of events) output.push(typeof event === 'string' ? event : JSON.stringify(event));
  output.end();
  return { texts: lines.map(({ text }) => text), lines, failure: output.failure, layer: output.layer };
}

test('lines are complete, whatever the pieces are, and progress is left out', () => {
  const { texts, failure, layer } = read([
    { stream: 'STEP 1/2: FROM base\n' },
    { stream: 'one ' },
    { stream: 'line\nand another\r\nthe' },
    { stream: ' last' },
    { status: 'Pulling from library/python', id: '3.12' },
    { status: 'Downloading', id: 'abc', progressDetail: { current: 1, total: 2 }, progress: '[=> ]' },
    { status: 'Pull complete', id: 'abc', progressDetail: {} },
    { stream: ' ---> 0123456789ab\n ---> Running in fedcba987654\n' },
    'text that is no JSON',
    '42',
    'null',
  ]);
  expect(texts).toEqual([
    'STEP 1/2: FROM base',
    'one line',
    'and another',
    'the last',
    '3.12: Pulling from library/python',
    ' ---> 0123456789ab',
    ' ---> Running in fedcba987654',
    'text that is no JSON',
    '42',
    'null',
  ]);
  expect(failure).toBeNull();
  expect(layer).toBe('0123456789ab');
  expect(read([{ stream: '--> fedcba987654\n' }, { stream: '--> Using cache 0123456789ab\n' }]).layer).toBe('0123456789ab');
});

test('a failure names the step, and the line that complains', () => {
  const { texts, lines, failure } = read([
    { stream: 'STEP 1/3: FROM base\n' },
    { stream: 'error: of another step\n' },
    { stream: 'STEP 2/3: RUN pip install nothing\n' },
    { stream: 'Looking for nothing\n' },
    { stream: 'ERROR: No matching distribution found for nothing\n' },
    { stream: 'you should upgrade' },
    { error: 'building at STEP "RUN pip install nothing": exit status 1', errorDetail: { message: 'building at STEP: exit status 1' } },
  ]);
  expect(failure).toEqual({ message: 'building at STEP: exit status 1', step: '2/3: RUN pip install nothing', line: 5, isKilled: false });
  expect(texts[failure!.line! - 1]).toContain('No matching distribution');
  expect(lines.at(-1)).toMatchObject({ stream: 'stderr', text: 'building at STEP: exit status 1' });
});

test('a failure without any output points at the step, or at itself', () => {
  expect(read([{ stream: 'Step 1/1 : RUN false\n' }, { error: 'status 1' }]).failure).toMatchObject({ step: '1/1: RUN false', line: 1 });
  expect(read([{ errorDetail: { message: 'no such base image' } }]).failure).toEqual({
    message: 'no such base image',
    step: null,
    line: 1,
    isKilled: false,
  });
});

test('an endless line and an endless log are cut; what the failure said is kept', () => {
  const { lines } = read([{ stream: 'x'.repeat(30_000) }, { stream: `${'y'.repeat(30_000)}\n` }]);
  expect(lines.map(({ text }) => text.length)).toEqual([8_192]);
  const endless = read([...Array.from({ length: 60_000 }, (_, index) => ({ stream: `line ${index}\n` })), { error: 'too much' }]);
  expect(endless.texts).toHaveLength(50_000 + 1 + 100);
  expect(endless.texts.slice(-2)).toEqual(['line 59999', 'too much']);
  expect(endless.failure).toMatchObject({ message: 'too much', line: 50_000 });
});

test('a step that the kernel killed', () => {
  const step = { stream: 'STEP 2/2: RUN make\n' };
  const failures = [
    [step, { stream: 'container exited on killed\n' }, { error: 'building at STEP "RUN make": while running runtime: exit status 1' }],
    [step, { error: 'building at STEP "RUN make": while running runtime: exit status 137' }],
    [step, { error: "The command '/bin/sh -c make' returned a non-zero code: 137" }],
    [step, { stream: 'container exited on killed\n' }, { stream: 'and more\n' }, { error: 'exit status 1' }],
  ].map((events) => read(events).failure?.isKilled);
  expect(failures).toEqual([true, true, true, false]);
});
