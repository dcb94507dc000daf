import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { defineEnvironment, textBlock, tool, type Tools } from '../definition.ts';

export interface SampleTask {
  q?: string;
  /** Milliseconds of setup. */
  setup?: number;
  fail?: 'create' | 'setup';
}

/** Events of all sessions, in order. */
export const journal: string[] = [];

const waiting = (mode: 'serial' | 'concurrent' | 'exclusive') =>
  tool<z.ZodObject<{ ms: z.ZodNumber }>, SampleTask, { calls: number }>({
    description: `waits, ${mode}`,
    input: z.object({ ms: z.number() }),
    mode,
    async run({ ms }, { sid }) {
      journal.push(`${sid} ${mode} starts`);
      await sleep(ms);
      journal.push(`${sid} ${mode} ends`);
      return `${mode} done`;
    },
  });

/** Uses every feature of a definition. */
export const sample = defineEnvironment<SampleTask, { calls: number }>({
  name: 'Sample',
  splits: ['train', { name: 'hard', type: 'validation' }, 'odd'],
  tasks: async () => [{ q: 'one' }, { q: 'two' }, { q: 'three' }],
  create({ task }) {
    if (task.fail === 'create') throw new TypeError('create exploded');
    return { calls: 0 };
  },
  async setup({ task, signal }) {
    if (task.fail === 'setup') throw new TypeError('setup exploded');
    if (task.setup) await sleep(task.setup, undefined, { signal });
  },
  teardown: ({ sid }) => void journal.push(`${sid} torn down`),
  prompt: ({ task }) => task.q ?? 'nothing',
  tools: {
    submit: tool({
      description: 'Ends it',
      input: z.object({ answer: z.string(), tries: z.int().optional() }),
      mode: 'exclusive',
      run: ({ answer }, { task }) => ({ content: answer, reward: answer === task.q ? 1 : 0, finished: true, metadata: { k: 1 } }),
    }),
    boom: tool({
      description: 'Crashes',
      run() {
        throw new Error('kaboom');
      },
    }),
    count: tool({ description: 'Counts', run: (_, { state }) => String((state.calls += 1)) }),
    slow: waiting('serial'),
    free: waiting('concurrent'),
    hidden: tool({ description: 'Not listed', unlisted: true, run: () => [textBlock('psst')] }),
    last: tool({ description: 'Takes the last message', terminal: true, input: z.object({ text: z.string() }), run: ({ text }) => text }),
    secret: tool({ description: 'Tells a secret', run: (_, { secrets }) => secrets['KEY'] ?? 'none' }),
  },
  taskTools({ task }) {
    const extra: Tools<SampleTask, { calls: number }> = { extra: tool({ description: 'For this task', run: () => 'extra' }) };
    return task.q === 'two' ? extra : {};
  },
  toolsets: {
    shell: ({ task }) => {
      if (task.q === 'two') throw new Error('Toolset shell requires a sandbox, which task two has not');
      return {
        count: tool({ description: 'The harness counts', run: () => 'counted by the harness' }),
        ls: tool({ description: 'Lists', run: () => 'a b' }),
      };
    },
  },
  scoreGroup: (candidates) => (candidates.length === 1 ? [] : candidates.map((_, index) => index)),
});

/** An environment with tasks by index and a conversation. */
export const indexed = defineEnvironment<{ id: number }>({
  name: 'indexed',
  splits: ['train'],
  numTasks: () => 1000,
  task(_, id) {
    if (id < 0 || id >= 1000) throw new RangeError('no such task');
    return { id };
  },
  messages: ({ task }) => [
    { role: 'system', blocks: [{ text: 'Be brief.', detail: null, type: 'text' }], detail: null },
    {
      role: 'assistant',
      blocks: [
        { text: 'hm', signature: null, detail: null, type: 'reasoning' },
        { id: 'c1', name: 'look', input: { zoom: 2, tags: ['a', null] }, detail: null, type: 'tool_call' },
      ],
      detail: null,
    },
    {
      role: 'user',
      blocks: [
        {
          tool_call_id: 'c1',
          blocks: [{ text: String(task.id), detail: null, type: 'text' }],
          is_error: true,
          detail: null,
          type: 'tool_result',
        },
      ],
      detail: null,
    },
  ],
  tools: { noop: tool({ description: 'Nothing', run: () => '' }) },
});
