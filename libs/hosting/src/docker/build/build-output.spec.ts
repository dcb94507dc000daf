import { describe, expect, test } from 'vitest';
import type { LogLine } from '../../provider/provider.port.ts';
import { BuildOutput } from './build-output.ts';

/** The lines of a log, and how the build ended. */
function read(events: readonly (object | string)[]) {
  const lines: LogLine[] = [];
  const output = new BuildOutput((line) => lines.push(line));
  for (const event of events) output.push(typeof event === 'string' ? event : JSON.stringify(event));
  output.end();
  return { texts: lines.map(({ text }) => text), lines, failure: output.failure, image: output.image };
}

const field = (number: number, bytes: Buffer | string): Buffer => {
  const value = Buffer.from(bytes);
  return Buffer.concat([Buffer.from([(number << 3) | 2, ...varint(value.length)]), value]);
};
const numeric = (number: number, value: number): Buffer => Buffer.from([number << 3, ...varint(value)]);
const varint = (value: number): number[] => (value < 128 ? [value] : [(value & 127) | 128, ...varint(value >>> 7)]);
const time = field(1, '');

/** As BuildKit sends it: the message of its protocol, encoded here by hand. */
const trace = (...parts: Buffer[]) => ({ id: 'moby.buildkit.trace', aux: Buffer.concat(parts).toString('base64') });
const vertex = (digest: string, name: string, more: { cached?: boolean; started?: boolean; error?: string } = {}) =>
  field(
    1,
    Buffer.concat([
      field(1, digest),
      field(3, name),
      ...(more.cached ? [numeric(4, 1)] : []),
      ...(more.started === false ? [] : [field(5, time)]),
      ...(more.error === undefined ? [] : [field(6, time), field(7, more.error)]),
    ]),
  );
const log = (digest: string, stream: 1 | 2, text: string) =>
  field(3, Buffer.concat([field(1, digest), field(2, time), numeric(3, stream), field(4, text)]));

describe('Podman and the classic builder', () => {
  test('lines are complete, whatever the pieces are, and progress is left out', () => {
    const { texts, failure, image } = read([
      { stream: 'STEP 1/2: FROM base\n' },
      { stream: 'one ' },
      { stream: 'line\nand another\r\nthe' },
      { stream: ' last' },
      { status: 'Pulling from library/python', id: '3.12' },
      { status: 'Downloading', id: 'abc', progressDetail: { current: 1, total: 2 }, progress: '[=> ]' },
      { status: 'Pull complete', id: 'abc', progressDetail: {} },
      { aux: { ID: 'sha256:abc' } },
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
      'text that is no JSON',
      '42',
      'null',
    ]);
    expect(failure).toBeNull();
    expect(image).toBe('sha256:abc');
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
    expect(failure).toEqual({ message: 'building at STEP: exit status 1', step: '2/3: RUN pip install nothing', line: 5 });
    expect(texts[failure!.line! - 1]).toContain('No matching distribution');
    expect(lines.at(-1)).toMatchObject({ stream: 'stderr', text: 'building at STEP: exit status 1' });
  });

  test('a failure without any output points at the step, or at itself', () => {
    expect(read([{ stream: 'Step 1/1 : RUN false\n' }, { error: 'status 1' }]).failure).toMatchObject({ step: '1/1: RUN false', line: 1 });
    expect(read([{ errorDetail: { message: 'no such base image' } }]).failure).toEqual({
      message: 'no such base image',
      step: null,
      line: 1,
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
});

describe('BuildKit', () => {
  test('steps run at the same time, and a failure points into its own', () => {
    const { texts, lines, failure, image } = read([
      trace(vertex('a', '[internal] load build definition')),
      trace(vertex('b', '[1/3] FROM base', { cached: true })),
      trace(vertex('c', '[2/3] RUN npm ci', { started: false })),
      trace(vertex('c', '[2/3] RUN npm ci'), vertex('d', '[stage 1/2] RUN make')),
      trace(log('c', 1, 'added 1 pack'), log('d', 2, 'cc main.c\n')),
      trace(log('c', 1, 'age\n'), log('d', 2, 'main.c: fatal error: no such file\n'), log('c', 1, 'still working\n')),
      trace(vertex('d', '[stage 1/2] RUN make', { error: 'process "make" did not complete successfully: exit code: 2' })),
      { errorDetail: { message: 'process "make" did not complete' }, error: 'process "make" did not complete' },
    ]);
    expect(texts).toEqual([
      'CACHED [1/3] FROM base',
      '[2/3] RUN npm ci',
      '[stage 1/2] RUN make',
      'cc main.c',
      'added 1 package',
      'main.c: fatal error: no such file',
      'still working',
      'process "make" did not complete successfully: exit code: 2',
    ]);
    expect(lines[3]).toMatchObject({ stream: 'stderr' });
    expect(failure).toMatchObject({ step: '[stage 1/2] RUN make', line: 6 });
    expect(image).toBeNull();
    expect(read([{ id: 'moby.image.id', aux: { ID: 'sha256:def' } }]).image).toBe('sha256:def');
  });

  test('bytes that are no status do no harm', () => {
    for (const bytes of [[0xff], [0x0a, 0x7f], [0x0b], [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80]]) {
      expect(read([{ id: 'moby.buildkit.trace', aux: Buffer.from(bytes).toString('base64') }]).texts).toEqual([]);
    }
    expect(read([{ id: 'moby.buildkit.trace', aux: 42 }]).texts).toEqual([]);
  });
});
