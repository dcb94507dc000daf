import { defineEnvironment, type Environment, imageBlock, textBlock, tool, type Tools, z } from '@palestra/environment-kit';
import type { JsonObject, Message, ToolResultBlock } from '@palestra/protocol';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * The environments behind the recorded exchanges, written in the kit. Schemas are those that pydantic
 * made for the originals, so that a recorded `/tools` answer stays comparable.
 */
interface Task {
  q: string;
  a: string;
  setup?: number;
}

const SHORT_PNG = 'iVBORw0KGgo=';
const DOT_PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const splits: Environment['splits'] = [
  { name: 'train', type: 'train' },
  { name: 'test', type: 'test' },
  { name: 'hard', type: 'validation' },
];
const tasks = (): Task[] => [
  { q: '1+1', a: '2' },
  { q: '2+2', a: '4' },
];

/** Shows as the Python exception of the originals. */
class ValueError extends Error {
  override name = 'ValueError';
}

const sizeSchema: JsonObject = {
  properties: { n: { title: 'N', type: 'integer' }, lead: { default: '', title: 'Lead', type: 'string' } },
  required: ['n'],
  title: 'N',
  type: 'object',
};
const sized = { input: z.object({ n: z.int(), lead: z.string().default('') }), inputSchema: sizeSchema };

const answerSchema: JsonObject = {
  properties: { answer: { title: 'Answer', type: 'string' } },
  required: ['answer'],
  title: 'A',
  type: 'object',
};
const answered = { input: z.object({ answer: z.string() }), inputSchema: answerSchema };

const timeSchema: JsonObject = { properties: { n: { default: 0, title: 'N', type: 'number' } }, title: 'N', type: 'object' };
const timed = { input: z.object({ n: z.number().default(0) }), inputSchema: timeSchema };

function raising(description: string, message: string): Tools<Task, undefined>[string] {
  return tool({
    description,
    run() {
      throw new Error(message);
    },
  });
}

const submit: Tools<Task, undefined>[string] = tool({
  ...answered,
  description: 'Submit an answer',
  run: ({ answer }, { task }) => {
    const right = answer === task.a;
    return { content: right ? 'ok' : 'no', reward: right ? 1 : 0, finished: true, metadata: { k: 1 } };
  },
});

/** A flat map as Python's `str` shows it. */
const pythonText = (map: Readonly<Record<string, string>>): string =>
  `{${Object.entries(map)
    .map(([key, value]) => `'${key}': '${value}'`)
    .join(', ')}}`;

const tools112: Tools<Task, undefined> = {
  big: tool({ ...sized, description: 'big output', run: ({ n, lead }) => lead + 'x'.repeat(n) }),
  boom: raising('', 'kaboom'),
  secretz: tool({ description: 's', run: (_, { secrets }) => pythonText(secrets) }),
  slow: tool({ ...sized, description: 'slow', run: ({ n }) => sleep(n * 1000, 'slow done') }),
  spaces: tool({ ...sized, description: 'spaces', run: ({ n }) => ' '.repeat(n) }),
  submit,
};
const rawTools: Tools<Task, undefined> = {
  ...tools112,
  boom_empty: raising('empty error', ''),
  boom_lines: raising('multi-line error', 'line one\nline two'),
  image: tool({
    description: 'image and detail',
    run: () => [textBlock('see image', { lang: 'en' }), imageBlock(SHORT_PNG, 'image/png')],
  }),
};
const tools167: Tools<Task, undefined> = {
  boom: raising('', 'kaboom'),
  par: tool({ ...timed, description: 'concurrent', mode: 'concurrent', run: ({ n }) => sleep(n * 1000, 'par done') }),
  probe: tool({ description: 'look', run: () => 'probed' }),
  slow: tool({ ...timed, description: 'serialised', run: ({ n }) => sleep(n * 1000, 'slow done') }),
  submit,
};

interface Behaviour {
  create?: () => undefined;
  setup?: (session: { task: Task; signal: AbortSignal }) => Promise<void>;
}

const prompted = (name: string, tools: Tools<Task, undefined>, behaviour: Behaviour = {}): Environment =>
  defineEnvironment<Task>({ name, splits, tasks, prompt: ({ task }) => task.q, tools, ...behaviour });

const explode = (message: string) => () => {
  throw new ValueError(message);
};

/** Recorded with openreward 0.1.112: `sdk-tour`, `ors-client-on-openreward-server` and others. */
export const mathEnvironments: Environment[] = [prompted('MathEnv', tools112), prompted('OtherEnv', tools112)];

const indexEnv = defineEnvironment<{ id: number }>({
  name: 'IndexEnv',
  splits: ['train'],
  numTasks: () => 1000,
  task(_, id) {
    if (id < 0 || id >= 1000) throw new RangeError(String(id));
    return { id };
  },
  prompt: ({ task }) => [textBlock(String(task.id)), imageBlock(SHORT_PNG, 'image/png')],
  tools: { submit: tool({ ...answered, description: 'Submit an answer', run: () => ({ content: 'ok', reward: 1, finished: true }) }) },
});

/** `reference-raw-http`, recorded with openreward 0.1.112. */
export const rawEnvironments: Environment[] = [
  prompted('MathEnv', rawTools),
  prompted('OtherEnv', tools112),
  prompted('BrokenEnv', tools112, { setup: async () => explode('setup exploded')() }),
  indexEnv,
];

function conversation(question: string): Message[] {
  const call = { id: 'c1', name: 'look', input: { zoom: 2 }, detail: null, type: 'tool_call' } as const;
  const blocks = [textBlock('a dot')];
  const result: ToolResultBlock = { tool_call_id: 'c1', blocks, is_error: false, detail: null, type: 'tool_result' };
  return [
    { role: 'system', blocks: [textBlock('Be brief.')], detail: null },
    { role: 'user', blocks: [textBlock('What is on the picture?'), imageBlock(DOT_PNG, 'image/png')], detail: null },
    {
      role: 'assistant',
      blocks: [{ text: 'I should look.', signature: null, detail: null, type: 'reasoning' }, textBlock('One moment.'), call],
      detail: null,
    },
    { role: 'user', blocks: [result, textBlock(question)], detail: { turn: 2 } },
  ];
}

const convEnv = defineEnvironment<Task>({
  name: 'ConvEnv',
  splits,
  tasks,
  messages: ({ task }) => conversation(task.q),
  tools: {
    submit: tool({ ...answered, description: 'Submit', mode: 'exclusive', run: () => ({ content: 'ok', reward: 1, finished: true }) }),
  },
  scoreGroup(candidates) {
    if (candidates.length === 1) throw new Error('need two');
    const scores = candidates.map(({ messages }, index) => ({ reward: index, metadata: index === 0 ? null : { n: messages.length } }));
    return candidates.length === 4 ? scores.slice(0, 1) : scores;
  },
});

const termEnv = prompted('TermEnv', {
  answer: tool({
    ...answered,
    description: 'Final answer',
    terminal: true,
    run: ({ answer }) => ({ content: answer, reward: 1, finished: true }),
  }),
});

/** `sdk-tour-0.1.167`, in the recorded order. */
export const environments167: Environment[] = [
  prompted('MathEnv', tools167),
  prompted('OtherEnv', tools167),
  convEnv,
  termEnv,
  prompted('SlowEnv', tools167, { setup: ({ task, signal }) => sleep((task.setup ?? 0) * 1000, undefined, { signal }) }),
  prompted('BrokenEnv', tools167, { setup: async () => explode('setup exploded')() }),
  prompted('CtorEnv', tools167, { create: explode('ctor exploded') }),
  prompted('LateSandboxEnv', tools167),
  prompted('SandboxEnv', tools167),
];
