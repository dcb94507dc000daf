import path from 'node:path';
import {
  defineEnvironment,
  type Environment,
  InfrastructureError,
  type Session,
  textBlock,
  tool,
  type ToolResult,
  z,
} from '@palestra/environment-kit';
import { GradeError } from './grade.ts';
import type { TaskContainer } from './task-container.ts';
import { type BuiltTask, Trial } from './trial.ts';

export interface HarborEnvironmentOptions {
  name: string;
  tasks: readonly BuiltTask[];
  /** Has a folder for each task, by its id. */
  folder: string;
  /** Secrets and variables of the environment, for `${NAME}` in task.toml. */
  known: Readonly<Record<string, string>>;
  /** A new container of a task's image. */
  start(task: BuiltTask, signal: AbortSignal): Promise<TaskContainer>;
  /** For the log of the instance. */
  say(text: string): void;
}

/** A task as clients see it: without tests and solution. */
interface TaskView {
  id: string;
  name: string;
  description?: string;
  keywords?: string[];
  metadata?: Record<string, unknown>;
  /** Of all files of the task. */
  digest: string;
}

interface State {
  task: BuiltTask;
  container: TaskContainer | null;
  trial: Trial | null;
  /** Why no reward can be had any more. */
  failure: string | null;
}

const SPLIT = 'train';
const COMMAND_SECONDS = 120;
const MAX_COMMAND_SECONDS = 3_600;
const MAX_COMMAND_CHARS = 100_000;

const commandInput = z.strictObject({
  command: z.string().max(MAX_COMMAND_CHARS).describe('Runs with bash -c in the working directory of the task'),
  timeout_s: z.number().positive().max(MAX_COMMAND_SECONDS).default(COMMAND_SECONDS).describe('Seconds until the command is killed'),
});

/** The tasks of a dataset as an environment: a shell in a container of the task's image, and its tests as the grader. */
export function harborEnvironment(options: HarborEnvironmentOptions): Environment {
  const byId = new Map(options.tasks.map((task) => [task.id, task]));
  const views = options.tasks.map(viewOf);
  return defineEnvironment<TaskView, State>({
    name: options.name,
    description: 'Tasks of Harbor.',
    splits: [SPLIT],
    tasks: () => views,
    create({ task: { id } }) {
      const task = byId.get(String(id));
      if (task === undefined) throw new RangeError(`There is no task ${JSON.stringify(String(id).slice(0, 100))}.`);
      return { task, container: null, trial: null, failure: null };
    },
    async setup({ state, signal }) {
      state.container = await options.start(state.task, signal);
      state.trial = new Trial(state.container, state.task, path.join(options.folder, state.task.id), options.known);
      await state.trial.begin(signal);
    },
    async teardown({ state }) {
      await state.container?.remove();
    },
    prompt: ({ state }) => state.trial!.step.instruction,
    tools: {
      bash: tool({
        description:
          'Runs a command in the container of the task and returns its output and exit code. Each command has its own shell: the working directory and variables are not kept. Programs in the background go on.',
        input: commandInput,
        run: runCommand,
      }),
      submit: tool({
        description:
          'Ends the work on the task, or on this step of it: the tests run, and give the reward. Programs in the background may be ended.',
        input: z.strictObject({}),
        mode: 'exclusive',
        run: (_, session: Session<TaskView, State>) => submit(session, options.say),
      }),
    },
  });
}

async function runCommand({ command, timeout_s: seconds }: z.output<typeof commandInput>, { state, signal }: Session<TaskView, State>) {
  const { container, trial } = state;
  assertGradable(state);
  const { leftMs } = trial!;
  if (leftMs === 0)
    return { content: `The ${trial!.step.agentSeconds} s for this task are over. Call submit.`, metadata: { exit_code: null } };
  const timeoutMs = Math.min(seconds * 1_000, leftMs);
  const { code, output } = await container!.run({ program: ['bash', '-c', command], user: trial!.step.agentUser, timeoutMs }, signal);
  const end = code === null ? `[killed after ${Math.round(timeoutMs / 1_000)} s]` : `[exit code ${code}]`;
  const text = output === '' || output.endsWith('\n') ? output : `${output}\n`;
  return { content: `${text}${end}`, metadata: { exit_code: code } };
}

async function submit({ sid, state, signal }: Session<TaskView, State>, say: (text: string) => void): Promise<ToolResult> {
  assertGradable(state);
  const { task, trial } = state;
  try {
    const graded = await trial!.submit((output) => say(`${sid} ${task.id}: tests of ${trial!.step.name}:\n${output}`), signal);
    const metadata = { rewards: { ...graded.rewards } };
    if (!graded.isOver) return { content: textBlock(trial!.step.instruction), metadata };
    const content = graded.reward === null ? 'The tests gave several metrics and none is "reward".' : `Reward: ${graded.reward}`;
    return { content, reward: graded.reward, finished: true, metadata };
  } catch (error) {
    if (signal.aborted) throw error;
    const message = error instanceof Error ? error.message : String(error);
    if (error instanceof GradeError) say(`${sid} ${task.id}: ${message}\n${error.output}`);
    // An agent that could go on might read the tests.
    state.failure = message;
    throw new InfrastructureError(message, { cause: error });
  }
}

function assertGradable({ failure }: State): void {
  if (failure !== null) throw new InfrastructureError(failure);
}

function viewOf({ id, name, description, keywords, metadata, digest }: BuiltTask): TaskView {
  return {
    id,
    name,
    ...(description !== '' && { description }),
    ...(keywords.length > 0 && { keywords }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
    digest,
  };
}
