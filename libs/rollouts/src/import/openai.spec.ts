import { describe, expect, it } from 'vitest';
import { all, bytesOf, golden, OPTIONS, sent, shapes, textBytes } from './import.fixture.ts';
import { importOpenai } from './openai.ts';

const importFile = () => all(importOpenai(bytesOf('openai.jsonl'), OPTIONS));
const importLine = async (record: object) => shapes(await all(importOpenai(textBytes(JSON.stringify(record)), OPTIONS)));

describe('OpenAI messages', () => {
  it('become the events that the golden file shows', async () => {
    await expect(golden(await importFile())).toMatchFileSnapshot('fixtures/openai.golden');
  });

  it('are the same events a second time, and others in another run', async () => {
    expect(await importFile()).toEqual(await importFile());
    const ids = (items: Awaited<ReturnType<typeof importFile>>) =>
      sent(items).flatMap(({ events = [] }) => events.map((event) => event.eventId));
    const here = new Set(ids(await importFile()));
    const there = ids(await all(importOpenai(bytesOf('openai.jsonl'), { ...OPTIONS, runName: 'other' })));
    expect(here.size).toBe(ids(await importFile()).length);
    expect(there.filter((id) => here.has(id))).toEqual([]);
  });

  it('tell a bad line by its number and read the rest', async () => {
    const told = shapes(await importFile()).flatMap((item) => ('problem' in item ? [[item.where, item.problem]] : []));
    expect(told).toEqual([
      ['line 4', expect.stringContaining('Not valid JSON')],
      ['line 5', 'message 0 has no role.'],
      ['line 6', 'The line must be a JSON object.'],
      ['line 9', 'The record has no messages.'],
    ]);
  });

  it('keep a failed record unscored', async () => {
    const [failed] = await importLine({ messages: [{ role: 'user', content: 'x' }], reward: 0, error: { message: 'boom' } });
    expect(failed!.messages![0]).not.toHaveProperty('reward');
    expect(failed!.start!.metadata).toMatchObject({ stop_reason: 'infra_error', source_reward: 0, error: { message: 'boom' } });
    expect(failed!.start!.metadata).not.toHaveProperty('reward_total');
  });

  it.each([
    ['1', 1],
    ['-0.5', -0.5],
    [true, 1],
    [false, 0],
    ['', undefined],
    ['good', undefined],
    ['NaN', undefined],
  ])('take the reward %j as %s', async (reward, expected) => {
    const [line] = await importLine({ messages: [{ role: 'user', content: 'x' }], reward });
    expect(line!.messages![0]!.reward).toBe(expected);
    const metadata = line!.start!.metadata as Record<string, unknown>;
    expect(metadata['reward_total']).toBe(expected);
  });

  it('keep the text of a prompt with several completions', async () => {
    for (const more of [{ completions: ['a', 'b'] }, { samples: [{ completion: 'a' }, { completion: 'b' }] }]) {
      const lines = await importLine({ prompt: 'what?', rewards: ['1', 0], ...more });
      expect(lines.map(({ messages }) => messages!.map(({ content, reward }) => [content, reward]))).toEqual([
        [
          ['what?', undefined],
          ['a', 1],
        ],
        [
          ['what?', undefined],
          ['b', 0],
        ],
      ]);
    }
  });

  it('keep several samples of a prompt as one group', async () => {
    const lines = await importLine({
      prompt: [{ role: 'user', content: 'x' }],
      samples: [
        { completion: 'a', reward: 1 },
        { completion: [{ role: 'assistant', content: 'b' }], reward: 0 },
      ],
    });
    const groups = lines.map(({ start }) => (start!.metadata as Record<string, unknown>).group_id);
    expect(new Set(groups).size).toBe(1);
    expect(lines.map(({ messages }) => messages!.at(-1))).toMatchObject([
      { content: 'a', reward: 1 },
      { content: 'b', reward: 0 },
    ]);
  });

  it('read records that are nested without end or hold no Unicode', async () => {
    const deep = `{"messages":[{"role":"user","content":"x"}],"x":${'['.repeat(10_000)}${']'.repeat(10_000)}}`;
    const broken = Buffer.concat([
      Buffer.from('{"messages":[{"role":"user","content":"a'),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('\\ud800\\u0000b"}]}'),
    ]);
    const [first, second] = shapes(await all(importOpenai(textBytes(`${deep}\n`, broken), OPTIONS)));
    expect(first).toHaveProperty('messages');
    expect(second!.messages![0]!.content).toBe('a\uFFFD\uFFFD\uFFFDb');
  });
});
