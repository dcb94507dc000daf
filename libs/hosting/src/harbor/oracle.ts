import { HostingError } from '../provider/hosting-error.ts';
import type { BuildLog } from '../process/build-log.ts';
import { GradeError } from './grade.ts';
import type { TaskContainer } from './task-container.ts';
import { type BuiltTask, Trial } from './trial.ts';

export interface OracleOptions {
  /** Has a folder for each task, by its id. */
  folder: string;
  known: Readonly<Record<string, string>>;
  start(task: BuiltTask, signal: AbortSignal): Promise<TaskContainer>;
  log: BuildLog;
}

/** What a solution reaches that solves its task. */
const FULL_REWARD = 1;
const SHOWN_LINES = 100;
/** Failures of the container that the task causes, for example by more memory than it may have. */
const OF_TASK = new Set<HostingError['code']>(['instance_failed', 'sandbox_lost']);

/**
 * Plays a task with its own solution in a new container, and returns the task as it can be graded. Rejects with `build_failed`, which names the
 * task and the line of the log, when its tests do not give the full reward.
 */
export async function verifyOracle(task: BuiltTask, options: OracleOptions, signal: AbortSignal): Promise<BuiltTask> {
  const started = performance.now();
  const first = await attempt(task, options, signal);
  const elapsed = () => `${((performance.now() - started) / 1_000).toFixed(1)} s`;
  if (first === null) {
    options.log.add(`Task ${task.id}: its solution gets the full reward (${elapsed()}).`, 'stdout');
    return task;
  }
  // Some tests connect to a server that the solution started. They pass only when it runs on.
  const keeping = { ...task, keepsProcesses: true };
  const second = await attempt(keeping, options, signal);
  if (second !== null) throw options.log.failure(`Task ${task.id}: ${second}`);
  options.log.add(
    `Task ${task.id}: its solution gets the full reward while its programs run on, so they do when agents submit (${elapsed()}).`,
    'stdout',
  );
  return keeping;
}

export const isSolvable = ({ steps }: BuiltTask): boolean => steps.every(({ solution }) => solution !== null);

/**
 * All tasks as they can be graded. `verified`: those of a sample, by id. Programs of other tasks run on only if the sample has one whose solution
 * needs it; never those of a task without a solution, because a program that runs on can write the reward.
 */
export function asVerified(tasks: readonly BuiltTask[], verified: ReadonlyMap<string, BuiltTask>): BuiltTask[] {
  const keepsProcesses = [...verified.values()].some((task) => task.keepsProcesses);
  return tasks.map((task) => verified.get(task.id) ?? { ...task, keepsProcesses: keepsProcesses && isSolvable(task) });
}

/** Null when the solution gets the full reward, else why not. */
async function attempt(task: BuiltTask, { folder, known, start, log }: OracleOptions, signal: AbortSignal): Promise<string | null> {
  const show = (text: string) => {
    for (const line of text.split('\n').filter(Boolean).slice(-SHOWN_LINES)) log.add(line, 'stdout');
  };
  log.begin(`Task ${task.id}: running its solution and tests.`);
  let container: TaskContainer | null = null;
  try {
    container = await start(task, signal);
    const trial = new Trial(container, task, `${folder}/${task.id}`, known);
    await trial.begin(signal);
    for (;;) {
      const { step } = trial;
      if (step.solution === null) return `the step ${step.name} has no solution`;
      const { code, output } = await trial.solve(signal);
      show(output);
      // Harbor runs the tests also after a solution that failed.
      if (code === null) return `the solution took longer than the ${step.agentSeconds} s of the task`;
      const { reward, isOver } = await trial.submit(show, signal);
      if (isOver) return reward !== null && reward >= FULL_REWARD ? null : `its solution gets the reward ${reward}, not ${FULL_REWARD}`;
    }
  } catch (error) {
    const isOfTask = error instanceof GradeError || (error instanceof HostingError && OF_TASK.has(error.code));
    if (!isOfTask) throw error;
    if (error instanceof GradeError) show(error.output);
    return `its solution was not graded. ${error.message}`;
  } finally {
    await container?.remove();
  }
}
