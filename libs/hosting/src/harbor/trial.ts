import { primaryReward, combineSteps, reaches, type Rewards } from './rewards.ts';
import { grade, LOGS, prepare, removeTests, setUpStep, SOLUTION } from './grade.ts';
import { waitUntilHealthy } from './healthcheck.ts';
import type { TaskContainer } from './task-container.ts';
import { packTaskFiles } from './task-files.ts';
import type { HarborTask, TaskStep } from './task-folder.ts';
import { resolveVariables } from './variables.ts';

/** A task whose image exists, as a version has it. */
export interface BuiltTask extends HarborTask {
  /** Id of the image. */
  imageId: string;
  digest: string;
  /** Its oracle needs processes that run on while the tests run, such as a server. */
  keepsProcesses: boolean;
}

interface Graded {
  /** Of the step, or of the trial when it is over. */
  rewards: Rewards;
  /** Of the trial: null while steps are left, and if several metrics have no `reward`. */
  reward: number | null;
  isOver: boolean;
}

const SOLVE_MS = 3_600_000;
const MAX_LOG_BYTES = 65_536;

/** One run of a task in a container: its steps, one after the other. */
export class Trial {
  readonly #container: TaskContainer;
  readonly #task: BuiltTask;
  readonly #folder: string;
  readonly #known: Readonly<Record<string, string>>;
  readonly #graded: Rewards[] = [];
  #stepEndsAt = Infinity;

  /** `folder`: of the task's files. `known`: secrets and variables of the environment. */
  constructor(container: TaskContainer, task: BuiltTask, folder: string, known: Readonly<Record<string, string>>) {
    this.#container = container;
    this.#task = task;
    this.#folder = folder;
    this.#known = known;
  }

  get step(): TaskStep {
    return this.#task.steps[this.#graded.length]!;
  }

  /** Milliseconds that the agent still has for the step. */
  get leftMs(): number {
    return Math.max(0, this.#stepEndsAt - Date.now());
  }

  /** Prepares the container for the first step. */
  async begin(signal: AbortSignal): Promise<void> {
    await prepare(this.#container, this.#folder, signal);
    await waitUntilHealthy(this.#container, this.#task.healthcheck, null, signal);
    await this.#beginStep(signal);
  }

  /** Runs the tests of the step, and prepares the next one. Rejects with `GradeError`. `onOutput` gets what the tests wrote. */
  async submit(onOutput: (output: string) => void, signal: AbortSignal): Promise<Graded> {
    const { step } = this;
    const variables = resolveVariables(step.verifierVariables, this.#known).values;
    const { healthcheck, keepsProcesses } = this.#task;
    const options = { folder: this.#folder, step, variables, healthcheck, endsProcesses: !keepsProcesses };
    const { rewards, output } = await grade(this.#container, options, signal);
    onOutput(output);
    this.#graded.push(rewards);
    const isOver = this.#graded.length === this.#task.steps.length || !reaches(rewards, step.minReward);
    if (!isOver) {
      await removeTests(this.#container, signal);
      await prepare(this.#container, this.#folder, signal);
      await this.#beginStep(signal);
    }
    if (!isOver) return { rewards, isOver, reward: null };
    const combined = combineSteps(this.#graded, this.#task.strategy);
    return { rewards: combined, isOver, reward: primaryReward(combined) };
  }

  /** Runs the solution of the step, as Harbor's oracle. Returns what it wrote. */
  async solve(signal: AbortSignal): Promise<{ code: number | null; output: string }> {
    const { solution, agentUser, agentSeconds } = this.step;
    await this.#container.upload(() => packTaskFiles(this.#folder, [{ from: solution!, to: SOLUTION }], LOGS, signal), signal);
    const variables = { ...resolveVariables(this.#task.solutionVariables, this.#known).values, DEBIAN_FRONTEND: 'noninteractive' };
    const timeoutMs = agentSeconds === null ? SOLVE_MS : agentSeconds * 1_000;
    const program = ['bash', '-c', `${SOLUTION}/solve.sh`];
    return this.#container.run({ program, user: agentUser, variables, timeoutMs, maxBytes: MAX_LOG_BYTES }, signal);
  }

  async #beginStep(signal: AbortSignal): Promise<void> {
    const { step } = this;
    await setUpStep(this.#container, this.#folder, step, signal);
    await waitUntilHealthy(this.#container, step.healthcheck, step.agentUser, signal);
    this.#stepEndsAt = step.agentSeconds === null ? Infinity : Date.now() + step.agentSeconds * 1_000;
  }
}
