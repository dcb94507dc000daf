import { defineEnvironment, type Environment, tool, type Tools, z } from '@palestra/environment-kit';
import type { GroupCandidate, Message } from '@palestra/protocol';
import { suiteEnvironments } from './suite-environments.ts';

/** The environments of the SDK's other suites over the wire, written in the kit; each says what its original in Python says. */

const answer = z.object({ answer: z.string() });
const ended = (text: string, reward: number) => ({ content: text, reward, finished: true });
const text = (value: string) => ({ type: 'text' as const, text: value, detail: null });

// test_session_toolset.py, test_gemini_cli_toolset.py

interface Sandbox {
  run(command: string): string;
  files: Map<string, string>;
}
/** As the suites' own one: it says what it was asked to run. */
const newSandbox = (): Sandbox => ({ run: (command) => `ran: ${command}`, files: new Map() });

type Sandboxed = Tools<object, Sandbox>;

const shell = (description: string): Sandboxed[string] =>
  tool({
    description,
    input: z.object({ command: z.string() }),
    mode: 'concurrent',
    run: ({ command }, { state }) => state.run(command),
  });
const lister = (description: string, argument: string): Sandboxed[string] =>
  tool({
    description,
    input: z.object({ [argument]: z.string() }),
    mode: 'concurrent',
    run: (input, { state }) => state.run(`${argument} ${String(input[argument])}`),
  });
const reader: Sandboxed[string] = tool({
  description: 'Reads a file, its lines numbered.',
  input: z.object({ file_path: z.string() }),
  run: ({ file_path: path }, { state }) =>
    (state.files.get(path) ?? '')
      .split('\n')
      .map((line, index) => `${index + 1}\t${line}`)
      .join('\n'),
});
const writer: Sandboxed[string] = tool({
  description: 'Writes a file.',
  input: z.object({ file_path: z.string(), content: z.string() }),
  run({ file_path: path, content }, { state }) {
    state.files.set(path, content);
    return `wrote ${path}`;
  },
});
const editor: Sandboxed[string] = tool({
  description: 'Replaces a piece of a file.',
  input: z.object({ file_path: z.string(), old_string: z.string(), new_string: z.string() }),
  run({ file_path: path, old_string: old, new_string: fresh }, { state }) {
    state.files.set(path, (state.files.get(path) ?? '').replace(old, fresh));
    return `Successfully edited ${path}`;
  },
});
const todos: Sandboxed[string] = tool({
  description: 'Notes what is left to do.',
  input: z.object({ todos: z.array(z.unknown()) }),
  run: ({ todos: list }) => `${list.length} to do`,
});

const claudeCode: Sandboxed = {
  bash: shell('Executes a given bash command and returns its output.'),
  glob: lister('Finds files by pattern.', 'pattern'),
  grep: lister('Finds lines by pattern.', 'pattern'),
  read: reader,
  write: writer,
  edit: editor,
  todo_write: todos,
};
const codex: Sandboxed = { bash: shell('Runs a shell command and returns its output.') };
const geminiCli: Sandboxed = {
  run_shell_command: shell('This tool executes a given shell command.'),
  glob: lister('Finds files by pattern.', 'pattern'),
  grep_search: lister('Finds lines by pattern.', 'pattern'),
  read_file: reader,
  write_file: writer,
  replace: editor,
  list_directory: lister('Lists a folder.', 'dir_path'),
  write_todos: todos,
};

const oneTask = { splits: ['train'], tasks: () => [{ id: '1' }], prompt: () => 'prompt' };
const submit = (result: string, reward: number) => tool({ description: 'Ends the episode.', run: () => ended(result, reward) });

const withSandbox = defineEnvironment<object, Sandbox>({
  ...oneTask,
  name: 'EnvWithSandbox',
  create: newSandbox,
  tools: { bash: tool({ description: 'Of the environment itself.', run: () => 'ENV_BASH' }), submit: submit('submitted', 1) },
  toolsets: { 'claude-code': () => claudeCode, codex: () => codex },
});
const needsSandbox = (): never => {
  throw new Error('this toolset requires a sandbox, which the environment has not');
};
const withoutSandbox = defineEnvironment<object>({
  ...oneTask,
  name: 'EnvWithoutSandbox',
  tools: { submit: submit('submitted', 1) },
  toolsets: { 'claude-code': needsSandbox, codex: needsSandbox },
});
const withGeminiCli = defineEnvironment<object, Sandbox>({
  ...oneTask,
  name: 'EnvWithGeminiCli',
  create: newSandbox,
  tools: { ...geminiCli, submit: submit('submitted', 1) },
  toolsets: { 'gemini-cli': () => geminiCli },
});

// test_terminal_tool.py, test_episode_finished.py

interface Sum {
  expected: string;
}
const sum = { splits: ['train'], tasks: (): Sum[] => [{ expected: '4' }], prompt: () => 'what is 2+2?' };
const graded = (given: string, expected: string) => ended('graded', given.trim() === expected ? 1 : 0);
const answered = tool({ description: 'Takes the answer.', input: answer, run: () => ended('done', 1) });

const terminalEnv = defineEnvironment<Sum>({
  ...sum,
  name: 'TerminalEnv',
  tools: {
    think: tool({ description: 'A visible scratchpad tool.', run: () => 'ok' }),
    submit_answer: tool({
      description: "Grade the assistant's final message.",
      input: answer,
      terminal: true,
      run: (input, { task }) => graded(input.answer, task.expected),
    }),
  },
});
const plainEnv = defineEnvironment<Sum>({ ...sum, name: 'PlainEnv', tools: { submit: answered } });
const gradedEnv = defineEnvironment<Sum>({
  ...sum,
  name: 'GradedEnv',
  tools: {
    probe: tool({ description: 'A tool that does not end the episode.', run: () => 'ok' }),
    submit: tool({ description: 'Grades the answer.', input: answer, run: (input, { task }) => graded(input.answer, task.expected) }),
  },
});

// test_messages.py, test_rich_messages.py

const conversation: Message[] = [
  { role: 'system', blocks: [text('You are a helpful assistant.')], detail: null },
  { role: 'user', blocks: [text('hi')], detail: null },
  { role: 'assistant', blocks: [text('hello!')], detail: null },
  { role: 'user', blocks: [text('what is 2+2?')], detail: null },
];
const conversationOf = (name: string, messages: () => Message[] | Promise<Message[]>) =>
  defineEnvironment({ name, splits: sum.splits, tasks: sum.tasks, messages, tools: { submit: answered } });

const promptEnv = defineEnvironment<Sum>({ ...sum, name: 'PromptEnv', tools: { submit: answered } });
const conversationEnv = conversationOf('ConversationEnv', () => conversation);
const setupConversationEnv = defineEnvironment<Sum, { words: string }>({
  name: 'SetupConversationEnv',
  splits: sum.splits,
  tasks: sum.tasks,
  create: () => ({ words: 'not ready' }),
  setup: ({ state }) => void (state.words = 'ready'),
  messages: ({ state }) => [{ role: 'user', blocks: [text(state.words)], detail: null }],
  tools: { submit: tool({ description: 'Takes the answer.', input: answer, run: () => ended('done', 1) }) },
});

const richConversation: Message[] = [
  { role: 'system', blocks: [text('You are a support agent.')], detail: null },
  { role: 'user', blocks: [text('Where is order #4411?')], detail: null },
  {
    role: 'assistant',
    blocks: [
      { type: 'reasoning', text: 'Two weeks late — check the carrier.', signature: null, detail: null },
      { type: 'tool_call', id: 'tc_1', name: 'lookup_order', input: { id: '4411' }, detail: null },
    ],
    detail: null,
  },
  {
    role: 'user',
    blocks: [{ type: 'tool_result', tool_call_id: 'tc_1', blocks: [text('{"status": "stalled"}')], is_error: false, detail: null }],
    detail: null,
  },
  {
    role: 'assistant',
    blocks: [
      { type: 'reasoning', text: 'Stalled — offer options.', signature: 'sig123', detail: null },
      text("It's stuck at the hub. Reship or refund?"),
    ],
    detail: null,
  },
];

// test_score_group.py, and the scores of test_rich_messages.py

/** A judge that believes what it reads: the number in the candidate's texts. */
const judged = (candidate: GroupCandidate) =>
  Number(candidate.messages.flatMap(({ blocks }) => blocks.flatMap((block) => (block.type === 'text' ? [block.text] : []))).join(' '));

type ScoreGroup = NonNullable<Environment['scoreGroup']>;
const scorer = (name: string, scoreGroup?: ScoreGroup) =>
  defineEnvironment({
    name,
    splits: ['train'],
    tasks: () => [{ topic: 'autumn' }],
    prompt: () => 'write a haiku',
    tools: { submit: tool({ description: 'Takes the haiku.', input: answer, run: () => ended('ok', 0) }) },
    ...(scoreGroup && { scoreGroup }),
  });

const scoringEnv = scorer('ScoringEnv', (candidates) =>
  candidates.map((candidate) => ({ reward: judged(candidate), metadata: { echo: candidate.metadata ?? null } })),
);
const richScoringEnv = defineEnvironment({
  name: 'RichScoringEnv',
  splits: ['train'],
  tasks: () => [{ id: 't0' }],
  messages: () => richConversation,
  tools: { submit: tool({ description: 'Ends the episode.', input: answer, run: () => ended('ok', 1) }) },
  scoreGroup: (candidates) => candidates.map(judged),
});

export interface KitSuite {
  file: string;
  tests: number;
  /** By port; the first of the environments is the default. */
  servers: { port: number; environments: Environment[]; withoutRoutes?: string[] }[];
}

/** The eight suites of 0.1.167, 205 tests. */
export const kitSuites: KitSuite[] = [
  { file: 'test_environment.py', tests: 91, servers: [{ port: 8080, environments: suiteEnvironments }] },
  { file: 'test_session_toolset.py', tests: 8, servers: [{ port: 8082, environments: [withSandbox, withoutSandbox] }] },
  { file: 'test_gemini_cli_toolset.py', tests: 19, servers: [{ port: 8083, environments: [withGeminiCli] }] },
  { file: 'test_terminal_tool.py', tests: 21, servers: [{ port: 8087, environments: [terminalEnv, plainEnv] }] },
  { file: 'test_episode_finished.py', tests: 7, servers: [{ port: 8091, environments: [gradedEnv] }] },
  {
    file: 'test_messages.py',
    tests: 22,
    servers: [
      {
        port: 8091,
        environments: [promptEnv, conversationEnv, conversationOf('AsyncConversationEnv', async () => conversation), setupConversationEnv],
      },
      { port: 8092, environments: [promptEnv, conversationEnv], withoutRoutes: ['messages'] },
    ],
  },
  {
    file: 'test_score_group.py',
    tests: 10,
    servers: [
      {
        port: 8093,
        environments: [
          scoringEnv,
          scorer('FloatScoringEnv', (candidates) => candidates.map(judged)),
          scorer('FailingEnv', () => {
            throw new Error('judge exploded');
          }),
          scorer('MiscountingEnv', () => [0.5]),
          scorer('PlainEnv'),
        ],
      },
      { port: 8094, environments: [scoringEnv], withoutRoutes: ['score_group'] },
    ],
  },
  { file: 'test_rich_messages.py', tests: 27, servers: [{ port: 8095, environments: [richScoringEnv] }] },
];
