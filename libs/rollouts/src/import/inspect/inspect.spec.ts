import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { deflateRawSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { all, fixture, golden, OPTIONS, shapes } from '../import.fixture.ts';
import { importInspectArchive, importInspectJson } from './inspect.ts';
import { ARCHIVE_LIMITS } from './inspect-archive.ts';
import { zipOf } from './zip.fixture.ts';

const log = fixture('arithmetic.eval');
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'inspect-'));
});
afterAll(() => rm(folder, { recursive: true }));

const write = async (name: string, bytes: Uint8Array) => {
  const file = path.join(folder, name);
  await writeFile(file, bytes);
  return file;
};
const stored = (name: string, value: unknown) => ({ name, data: Buffer.from(JSON.stringify(value)) });
const header = stored('header.json', {
  version: 2,
  eval: { eval_id: 'e', task: 't', model: 'm', config: { epochs: 1 }, scorers: [{ name: 'pick' }] },
});
const sample = (more: object) => ({ id: 1, epoch: 1, messages: [{ role: 'user', content: 'q' }], ...more });
const importSamples = async (...samples: object[]) => importScored({}, ...samples);
const importScored = async (options: { scorer?: string }, ...samples: object[]) => {
  const entries = samples.map((one, index) => stored(`samples/${index}_epoch_1.json`, one));
  return shapes(await all(importInspectArchive(await write('made.eval', zipOf([header, ...entries])), { ...OPTIONS, ...options })));
};

describe('Inspect logs', () => {
  it('of a real run become the events that the golden file shows', async () => {
    await expect(golden(await all(importInspectArchive(log, OPTIONS)))).toMatchFileSnapshot('../fixtures/inspect.golden');
  });

  it('mean the same as .json', async () => {
    const items = await all(importInspectJson(readFileSync(fixture('arithmetic.json.log'), 'utf8'), OPTIONS));
    await expect(golden(items)).toMatchFileSnapshot('../fixtures/inspect-json.golden');
  });

  it('say which samples failed, which tools failed, and when each message was made', async () => {
    const rollouts = shapes(await all(importInspectArchive(log, OPTIONS)));
    const named = (id: string) => rollouts.filter(({ start }) => (start!.task_spec as { id: string }).id === id);
    for (const { start, messages } of named('broken')) {
      expect(start!.metadata).toMatchObject({
        stop_reason: 'infra_error',
        error: { message: expect.stringContaining('sandbox went away') },
      });
      expect(messages!.some((message) => 'reward' in message || message.isFinished)).toBe(false);
    }
    for (const { messages } of named('unlucky')) {
      expect(messages!.find(({ type }) => type === 'tool_result')).toMatchObject({
        metadata: { is_error: true, error: 'thirteen is not allowed' },
        name: 'add',
      });
    }
    const [first, second] = named('sum');
    expect(first!.start!.metadata).toMatchObject({
      group_id: expect.stringMatching(/.+:sum$/),
      sample_idx: 0,
      n_samples: 2,
      phase: 'eval',
      reward_total: 1,
    });
    expect(second!.start!.metadata).toMatchObject({ sample_idx: 1 });
    expect(first!.messages!.map(({ type }) => type)).toEqual([
      'system_message',
      'user_message',
      'assistant_message',
      'tool_call',
      'tool_result',
      'reasoning',
      'assistant_message',
    ]);
    const times = first!.messages!.map(({ timestamp }) => timestamp as number);
    expect(times.toSorted((a, b) => a - b)).toEqual(times);
    expect(new Set(times).size).toBeGreaterThan(2);
  });

  it.each([
    ['C', 1],
    ['I', 0],
    ['P', 0.5],
    ['N', 0],
    [true, 1],
    [0.75, 0.75],
    ['0.5', 0.5],
    ['yes', 1],
    [{ only: 'C' }, 1],
  ])('read the score %j as %d', async (value, reward) => {
    const [rollout] = await importSamples(sample({ scores: { other: { value: 9 }, pick: { value } } }));
    expect(rollout!.messages!.at(-1)).toMatchObject({ reward });
  });

  it.each(['essay', ['C'], {}, { a: 'essay', b: 'prose' }, null])('keep the score %j as unscored', async (value) => {
    const [rollout] = await importSamples(sample({ scores: { pick: { value } } }));
    expect(rollout!.messages!.at(-1)).not.toHaveProperty('reward');
    expect(rollout!.start!.metadata).not.toHaveProperty('reward_total');
  });

  it('ask which of several values is the reward, and take the one that is chosen', async () => {
    const scored = sample({
      scores: { pick: { value: { style: 0.25, truth: 'C', note: 'fine' } }, 'a.b': { value: 0.5 }, a: { value: 1 } },
    });
    expect(await importSamples(scored)).toMatchObject([
      { problem: 'The score pick has several values: give --scorer one of pick.style, pick.truth.' },
    ]);
    for (const [scorer, reward] of Object.entries({ 'pick.style': 0.25, 'pick.truth': 1, 'a.b': 0.5, a: 1 })) {
      const [rollout] = await importScored({ scorer }, scored);
      expect(rollout).toMatchObject({ start: { metadata: { scorer, reward_total: reward } } });
    }
    const problemOf = async (scorer: string) => (await importScored({ scorer }, scored))[0]!.problem;
    expect(await problemOf('style')).toBe('There is no score style: give --scorer one of pick, a.b, a.');
    expect(await problemOf('pick.taste')).toBe('The score pick has no value taste: it has style, truth, note.');
    expect(await problemOf('a.c')).toBe('The score a has no value c: it is one value.');
    // A sample that was never scored, or failed before, says nothing of the choice.
    const [unscored, failed] = await importScored({ scorer: 'pick.style' }, sample({}), sample({ id: 2, error: { message: 'no' } }));
    expect(unscored!.start!.metadata).not.toHaveProperty('reward_total');
    expect(failed!.start!.metadata).toMatchObject({ stop_reason: 'infra_error' });
  });

  it('put attachments where they belong, and tell the limit that ended a sample', async () => {
    const [rollout] = await importSamples(
      sample({
        messages: [{ role: 'user', content: [{ type: 'image', image: 'attachment://h' }] }],
        attachments: { h: 'data:image/png;base64,AAAA' },
        limit: { type: 'token', limit: 10 },
      }),
    );
    expect(rollout).toMatchObject({
      start: { metadata: { stop_reason: 'max_tokens' } },
      messages: [{ content: '![image](data:image/png;base64,AAAA)', isFinished: false }],
    });
  });

  it('are read sample by sample: a bad one is told, the others kept', async () => {
    const items = await importSamples(sample({ messages: 'none' }), sample({ id: 2 }));
    expect(items).toMatchObject([
      { where: 'samples/0_epoch_1.json', problem: 'messages must be a list.' },
      { messages: [{ content: 'q' }] },
    ]);
  });

  it('keep the environment and the split that the evaluation names', async () => {
    const start = stored('_journal/start.json', {
      version: 2,
      eval: { eval_id: 'e', task: 't', task_args: { environment: 'acme/math', split: 'validation' } },
    });
    const file = await write('hosted.eval', zipOf([start, stored('samples/1_epoch_1.json', sample({ metadata: { split: 'test' } }))]));
    expect(shapes(await all(importInspectArchive(file, OPTIONS)))).toMatchObject([{ start: { environment: 'acme/math', split: 'test' } }]);
  });

  it('of a run that died are read by their journal', async () => {
    const start = stored('_journal/start.json', { version: 2, eval: { eval_id: 'e', task: 't' } });
    const file = await write('died.eval', zipOf([start, stored('samples/1_epoch_1.json', sample({}))]));
    expect(shapes(await all(importInspectArchive(file, OPTIONS)))).toMatchObject([{ start: { environment: 't' } }]);
  });
});

describe('archives that are no logs', () => {
  it('are refused', async () => {
    const read = async (bytes: Uint8Array) => all(importInspectArchive(await write('bad.eval', bytes), OPTIONS));
    await expect(read(Buffer.from('no archive'))).rejects.toThrow('Not a ZIP archive');
    await expect(read(zipOf([stored('a.json', {})]))).rejects.toThrow('no Inspect log');
    await expect(read(readFileSync(log).subarray(0, 5_000))).rejects.toThrow('Not a ZIP archive');
  });

  it.each(['deflate', 'stored'])('and bombs (%s) are stopped while they unpack', async (method) => {
    const data = Buffer.alloc(4 * 1024 * 1024, 32);
    const packed =
      method === 'deflate'
        ? { name: 'samples/1_epoch_1.json', data, deflated: deflateRawSync(data) }
        : { name: 'samples/1_epoch_1.json', data };
    const file = await write('bomb.eval', zipOf([header, packed]));
    const read = (limits: object) => all(importInspectArchive(file, { ...OPTIONS, limits: { ...ARCHIVE_LIMITS, ...limits } }));
    expect(await read({ entryBytes: 1024 * 1024 })).toMatchObject([
      { problem: expect.stringContaining('unpacks to more than 1048576 bytes') },
    ]);
    expect(await read({ totalBytes: 1024 * 1024 })).toMatchObject([{ problem: expect.stringContaining('The archive unpacks to more') }]);
    await expect(read({ entries: 1 })).rejects.toThrow('more than 1 files');
    if (method === 'deflate')
      expect(await read({ ratio: 100, ratioFromBytes: 1024 })).toMatchObject([{ problem: expect.stringContaining('100 times its size') }]);
  });

  it('refuses Zstandard frames that state a window or a content of gigabytes', async () => {
    const window = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x01, 0x00, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    const content = [0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0xff, 0xff, 0xff, 0xf0, 0x01, 0x00, 0x00];
    for (const frame of [window, content]) {
      const file = await write('large.eval', zipOf([header, { name: 'samples/1_epoch_1.json', data: Buffer.from(frame), method: 93 }]));
      expect(await all(importInspectArchive(file, OPTIONS))).toMatchObject([{ problem: expect.stringContaining('is damaged') }]);
    }
  });

  it('and damaged Zstandard is told', async () => {
    const file = await write(
      'damaged.eval',
      zipOf([header, { name: 'samples/1_epoch_1.json', data: Buffer.from('not zstandard at all'), method: 93 }]),
    );
    expect(await all(importInspectArchive(file, OPTIONS))).toMatchObject([{ problem: expect.stringContaining('is damaged') }]);
  });
});
