import { defineEnvironment, type Environment, tool, type Tools } from '@palestra/environment-kit';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * The environments of the SDK's `tests/test_environment.py`, written in the kit. Where the originals block a thread, these
 * wait: JavaScript has one thread, and an environment that must compute for long belongs in a worker.
 */
const submit = <Task>(result: string, reward: number): Tools<Task, undefined> => ({
  submit: tool({ description: '', run: () => ({ content: result, reward, finished: true }) }),
});

const asked = (name: string, split: string, task: Record<string, string>, key: string, result: string, reward: number): Environment =>
  defineEnvironment<Record<string, string>>({
    name,
    splits: [split],
    tasks: async () => [task],
    prompt: (session) => session.task[key]!,
    tools: submit(result, reward),
  });

const largeCounts: Record<string, number> = { train: 1000, test: 200 };

const largeEnv = defineEnvironment<{ id: number; split: string }>({
  name: 'LargeEnv',
  splits: ['train', 'test'],
  numTasks: (split) => largeCounts[split]!,
  task(split, id) {
    if (id < 0 || id >= largeCounts[split]!) throw new RangeError(`index ${id} out of range for split ${split}`);
    return { id, split };
  },
  prompt: ({ task }) => `task_${task.id}`,
  tools: {
    submit: tool({
      description: '',
      run: (_, { task }) => ({ content: `result_${task.id}`, reward: task.id / 1000, finished: true }),
    }),
  },
});

const envWithTaskTools = defineEnvironment<{ id: string; tools: string[] }>({
  name: 'EnvWithTaskTools',
  splits: ['train'],
  tasks: () => [{ id: '1', tools: ['read_file', 'write_file'] }],
  prompt: () => 'task tools prompt',
  tools: {
    ...submit('task_tools_result', 1),
    non_shared_helper: tool({
      description: 'A non-shared tool that should not appear in env.list_tools()',
      unlisted: true,
      run: () => ({ content: 'helper', reward: 0 }),
    }),
  },
  taskTools: ({ task }) =>
    Object.fromEntries(task.tools.map((name) => [name, tool({ description: `Task tool: ${name}`, run: () => name })])),
});

const slowSetupEnv = defineEnvironment({
  name: 'SlowSetupEnv',
  splits: ['train'],
  tasks: () => [{}],
  setup: ({ signal }) => sleep(30_000, undefined, { signal }),
  prompt: () => 'prompt-before-setup',
  tools: submit('submitted', 1),
});

const blockingPromptEnv = defineEnvironment<object, { prompt: string | null }>({
  name: 'BlockingPromptEnv',
  splits: ['train'],
  tasks: () => [{}],
  create: () => ({ prompt: null }),
  async setup({ state }) {
    await sleep(1000);
    state.prompt = 'prompt-after-setup';
  },
  prompt({ state }) {
    if (state.prompt === null) throw new Error('prompt ran before setup completed');
    return state.prompt;
  },
  tools: { submit: tool({ description: '', run: () => ({ content: 'submitted', reward: 1, finished: true }) }) },
});

const BLOCKED_MS = 1500;

const blockingListTasksEnv = defineEnvironment({
  name: 'BlockingListTasksEnv',
  splits: ['slow'],
  tasks: () => sleep(BLOCKED_MS, [{}]),
  prompt: () => 'blocking',
  tools: submit('ok', 1),
});

const blockingToolEnv = defineEnvironment({
  name: 'BlockingToolEnv',
  splits: ['train'],
  tasks: () => [{}],
  prompt: () => 'blocking-tool',
  tools: { slow: tool({ description: '', run: () => sleep(BLOCKED_MS, { content: 'slept', reward: 0, finished: true }) }) },
});

const blockingInitEnv = defineEnvironment({
  name: 'BlockingInitEnv',
  splits: ['train'],
  tasks: () => [{}],
  create: () => sleep(BLOCKED_MS, undefined),
  prompt: () => 'blocking-init',
  tools: submit('ok', 1),
});

/** In the suite's order: the first is the default. */
export const suiteEnvironments: Environment[] = [
  asked('Foo', 'train', { foo: 'bar' }, 'foo', 'foo_result', 1),
  asked('Bar', 'test', { bar: 'baz' }, 'bar', 'bar_result', 0.5),
  asked('AsyncBaz', 'train', { baz: 'qux' }, 'baz', 'baz_result', 0.75),
  largeEnv,
  envWithTaskTools,
  slowSetupEnv,
  blockingPromptEnv,
  blockingListTasksEnv,
  blockingToolEnv,
  blockingInitEnv,
];
