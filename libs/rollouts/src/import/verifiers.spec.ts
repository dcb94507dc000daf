import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { all, bytesOf, fixture, golden, OPTIONS, sent, shapes, textBytes } from './import.fixture.ts';
import { importVerifiers } from './verifiers.ts';

const metadata = JSON.parse(readFileSync(fixture('metadata.json'), 'utf8')) as Record<string, unknown>;
const importLine = async (record: object) => shapes(await all(importVerifiers(textBytes(JSON.stringify(record)), OPTIONS)));

describe('results of verifiers', () => {
  it('become the events that the golden file shows', async () => {
    const items = await all(importVerifiers(bytesOf('results.jsonl'), { ...OPTIONS, metadata }));
    await expect(golden(items)).toMatchFileSnapshot('fixtures/verifiers.golden');
  });

  it('number the rollouts of an example, and do not take the 0.0 of a failed one for a reward', async () => {
    const rollouts = shapes(await all(importVerifiers(bytesOf('results.jsonl'), { ...OPTIONS, metadata })));
    expect(rollouts.map(({ start }) => start!.metadata)).toMatchObject([
      { group_id: 'adding:0', sample_idx: 0, n_samples: 2, reward_total: 1, stop_reason: 'no_tool_call', num_turns: 2 },
      { group_id: 'adding:0', sample_idx: 1, reward_total: 1 },
      { group_id: 'adding:1', sample_idx: 0, source_reward: 0, stop_reason: 'infra_error' },
      { group_id: 'adding:1', sample_idx: 1, source_reward: 0 },
    ]);
    expect(rollouts[2]!.start!.metadata).not.toHaveProperty('reward_total');
    expect(rollouts[2]!.messages!.at(-1)).toMatchObject({ isFinished: false });
    expect(rollouts[2]!.messages!.at(-1)).not.toHaveProperty('reward');
  });

  it('are read from rows of a saved dataset, whose members are JSON text', async () => {
    const [row] = await importLine({
      example_id: 3,
      prompt: JSON.stringify([{ role: 'user', content: 'q' }]),
      completion: JSON.stringify([{ role: 'assistant', content: 'a' }]),
      info: '{"level": 1}',
      reward: 0.5,
      task: 'default',
    });
    expect(row).toMatchObject({
      start: { variant: 'default', task_spec: { example_id: 3, info: { level: 1 } }, rollout_info: { task_index: 3 } },
      messages: [{ content: 'q' }, { content: 'a', reward: 0.5, isFinished: true }],
    });
  });

  it('are read as texts of a completion environment; a row without either is told', async () => {
    const [row] = await importLine({ example_id: 0, prompt: 'Once', completion: ' upon', reward: 0 });
    expect(row!.messages).toMatchObject([
      { type: 'user_message', content: 'Once' },
      { type: 'assistant_message', content: ' upon', reward: 0 },
    ]);
    expect(await importLine({ example_id: 0, reward: 1 })).toEqual([
      { where: 'line 1', problem: 'The row has neither prompt nor completion.' },
    ]);
  });

  it("an overlong prompt is the policy's own end, and stays scored", async () => {
    const [row] = await importLine({
      prompt: 'x',
      completion: 'y',
      reward: 0.25,
      error: { error: 'OverlongPromptError', error_chain_repr: 'OverlongPromptError()' },
    });
    expect(row).toMatchObject({
      start: { metadata: { stop_reason: 'context_length', reward_total: 0.25 } },
      messages: [{}, { reward: 0.25, isFinished: false }],
    });
  });
});

describe('episodes of verifiers', () => {
  const node = (parent: number | null, role: string, content: string) => ({
    parent,
    timestamp: 1_770_000_000 + (parent ?? -1),
    message: { role, content },
  });
  const episode = (nodes: object[], more: object = {}) => ({
    id: 'e1',
    env: { id: 'adding' },
    task: { type: 'Sum', data: { idx: 4, question: 'q' } },
    group: { id: 'g1' },
    run: { type: 'train', id: 'r', work: { type: 'train', step: 9, policy: { start: 8, end: 9 } } },
    ok: true,
    traces: [
      { id: 't1', nodes, rewards: { right: { score: 1, weight: 0.5 }, short: { score: 0.5 } }, is_completed: true, ok: true, ...more },
    ],
  });

  it('become a rollout a branch, with the true times of their messages; the last one has the reward', async () => {
    const nodes = [node(null, 'system', 's'), node(0, 'user', 'q'), node(1, 'assistant', 'a'), node(1, 'assistant', 'b')];
    const items = await all(importVerifiers(textBytes(JSON.stringify(episode(nodes))), OPTIONS));
    const main = sent(items)[1]!.events![0]!.eventId;
    const rollouts = shapes(items);
    expect(rollouts).toHaveLength(2);
    expect(rollouts[0]).toMatchObject({
      start: {
        environment: 'adding',
        step: 9,
        rollout_info: { task_index: 4 },
        metadata: { group_id: 'g1', phase: 'train', policy_step: 8, branch_of: main },
      },
      messages: [{ timestamp: 1_769_999_999_000 }, { timestamp: 1_770_000_000_000 }, { content: 'a', isFinished: true }],
    });
    expect(rollouts[0]!.start!.metadata).not.toHaveProperty('reward_total');
    expect(rollouts[0]!.messages!.filter(({ reward }) => reward !== undefined)).toEqual([]);
    expect(rollouts[1]).toMatchObject({
      start: { metadata: { group_id: 'g1', reward_total: 1, branch: 1 } },
      messages: [{}, {}, { content: 'b', reward: 1, isFinished: true }],
    });
    expect(rollouts[1]!.start!.metadata).not.toHaveProperty('branch_of');
  });

  it('tell an answer that was cut off, a failed compaction and a lost connection to the model', async () => {
    const nodes = [node(null, 'user', 'q'), node(0, 'assistant', 'a')];
    const cut = { stop_condition: 'agent_completed', calls: [{ node: 1, finish_reason: 'length' }, { error: { type: 'ProviderError' } }] };
    const [long] = await importLine(episode(nodes, cut));
    expect(long).toMatchObject({ start: { metadata: { stop_reason: 'max_tokens' } }, messages: [{}, { reward: 1, isFinished: false }] });
    const [full] = await importLine(episode(nodes, { stop_condition: 'compaction_failed' }));
    expect(full).toMatchObject({
      start: { metadata: { stop_reason: 'context_length' } },
      messages: [{}, { reward: 1, isFinished: false }],
    });
    const [lost] = await importLine(episode(nodes, { ok: false, errors: [{ type: 'InterceptionError', message: 'gone' }] }));
    expect(lost).toMatchObject({ start: { metadata: { stop_reason: 'infra_error' } } });
  });

  it('of several agents are a group an agent; one agent alone is in the group of its episode', async () => {
    const nodes = [node(null, 'user', 'q'), node(0, 'assistant', 'a')];
    const groupsOf = async (more: object, ...names: string[]) => {
      const { traces, ...rest } = episode(nodes);
      const seats = names.map((name) => ({ ...traces[0], id: name, agent: { name } }));
      return (await importLine({ ...rest, ...more, traces: seats })).map(
        ({ start }) => (start!.metadata as { group_id?: string }).group_id,
      );
    };
    expect(await groupsOf({}, 'solver', 'judge')).toEqual(['adding:g1:solver', 'adding:g1:judge']);
    expect(await groupsOf({ group: undefined, run: undefined }, 'solver', 'judge')).toEqual(['adding:4:solver', 'adding:4:judge']);
    expect(await groupsOf({}, 'agent')).toEqual(['g1']);
  });

  it('have the tokens that the trace counted, unless it is only a branch of it', async () => {
    const nodes = [node(null, 'user', 'q'), node(0, 'assistant', 'a')];
    const counts = { num_input_tokens: 15, num_output_tokens: 11 };
    const [whole] = await importLine(episode(nodes, counts));
    expect(whole!.start!.metadata).toMatchObject({ tokens: { prompt: 15, output: 11 } });
    const [branch] = await importLine(episode([...nodes, node(0, 'assistant', 'b')], counts));
    expect(branch!.start!.metadata).not.toHaveProperty('tokens');
  });

  it('have no score if one of their rewards is no number', async () => {
    const nodes = [node(null, 'user', 'q'), node(0, 'assistant', 'a')];
    for (const score of [null, NaN, undefined]) {
      const [line] = await importLine(episode(nodes, { rewards: { right: { score: 1 }, broken: { score } } }));
      expect(line!.messages!.at(-1)).not.toHaveProperty('reward');
      expect(line!.start!.metadata).not.toHaveProperty('reward_total');
    }
    const [text] = await importLine(episode(nodes, { rewards: { right: { score: '0.5' } } }));
    expect(text!.messages!.at(-1)).toMatchObject({ reward: 0.5 });
  });

  it('that are no tree, or failed, are told or kept unscored', async () => {
    expect(await importLine(episode([node(1, 'user', 'x'), node(0, 'user', 'y')]))).toEqual([]);
    const [failed] = await importLine(
      episode([node(null, 'user', 'x')], { ok: false, errors: [{ type: 'SandboxError', message: 'gone' }] }),
    );
    expect(failed).toMatchObject({ start: { metadata: { stop_reason: 'infra_error' } } });
    expect(failed!.messages![0]).not.toHaveProperty('reward');
  });
});
