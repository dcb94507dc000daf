import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { HostingError } from '../provider/hosting-error.ts';
import { sourceInvalid } from '../source/source-limits.ts';
import { readText } from '../target/read-text.ts';
import { type Healthcheck, networkOf, readTaskConfig, type TaskConfig, type WantedNetwork } from './task-config.ts';

/** One instruction and its tests. A task without `steps` is one step. */
export interface TaskStep {
  name: string;
  instruction: string;
  /** Folders that are copied to /tests, in this order, relative to the task; the script of the last one that has it runs. */
  tests: string[];
  /** Null: the task has none. */
  solution: string | null;
  /** Copied to the working directory before the step. Its `setup.sh` runs. */
  workdir: string | null;
  /** Seconds; null: no limit. */
  agentSeconds: number | null;
  agentUser: string | null;
  verifierSeconds: number;
  verifierUser: string | null;
  verifierVariables: Record<string, string>;
  minReward: number | Record<string, number> | null;
  healthcheck: Healthcheck | null;
}

/** A task of Harbor, without its files. */
export interface HarborTask {
  /** Name of its folder; unique in the dataset. */
  id: string;
  /** From `[task]`, such as `harbor/hello-world`, else the id. */
  name: string;
  description: string;
  keywords: string[];
  metadata: Record<string, unknown>;
  /** A named image; null: `environment/Dockerfile`. */
  image: string | null;
  buildSeconds: number;
  cpus: number | null;
  memoryMb: number | null;
  variables: Record<string, string>;
  solutionVariables: Record<string, string>;
  workdir: string | null;
  healthcheck: Healthcheck | null;
  network: WantedNetwork;
  strategy: 'mean' | 'final';
  steps: TaskStep[];
}

/** Every task has an image. */
const MAX_TASKS = 500;
const MAX_METADATA_CHARS = 8_192;
const TASK_FILE = 'task.toml';

/** The folders of tasks, relative to a folder of checked source: itself, or those in it or in `tasks`. Empty: it is not Harbor's. */
export async function findTasks(folder: string): Promise<string[]> {
  if (isTask(folder)) return ['.'];
  for (const parent of ['', 'tasks']) {
    const names = await readdir(path.join(folder, parent)).catch(() => []);
    const tasks = names.filter((name) => isTask(path.join(folder, parent, name))).toSorted();
    if (tasks.length > MAX_TASKS)
      throw sourceInvalid(`The dataset has ${tasks.length} tasks; at most ${MAX_TASKS} are deployed together. Split it.`);
    if (tasks.length > 0) return tasks.map((name) => path.posix.join(parent, name));
  }
  return [];
}

const isTask = (folder: string): boolean =>
  existsSync(path.join(folder, TASK_FILE)) && ['instruction.md', 'steps'].some((name) => existsSync(path.join(folder, name)));

/** Reads a task as Harbor does. Throws `source_invalid` and `hosting_unsupported`, which name its file. `id`: the name of its folder. */
export async function readTask(folder: string, id: string): Promise<HarborTask> {
  const file = `${id}/${TASK_FILE}`;
  const text = await readText(path.join(folder, TASK_FILE));
  if (text === null) throw sourceInvalid(`There is no ${file}.`);
  const config = readTaskConfig(text, file);
  const { environment, task } = config;
  assertImage(folder, id, environment.docker_image ?? null);
  const metadata = JSON.stringify(config.metadata);
  if (metadata.length > MAX_METADATA_CHARS) throw sourceInvalid(`${file}: metadata has more than ${MAX_METADATA_CHARS} characters.`);
  const steps = (config.steps ?? []).map((step) => readStep(folder, id, config, step));
  return {
    id,
    name: task?.name ?? id,
    description: task?.description ?? '',
    keywords: task?.keywords ?? [],
    metadata: JSON.parse(metadata) as Record<string, unknown>,
    image: environment.docker_image ?? null,
    buildSeconds: environment.build_timeout_sec,
    cpus: environment.cpus ?? null,
    memoryMb: environment.memory_mb ?? environment.memory ?? null,
    variables: environment.env,
    solutionVariables: config.solution.env,
    workdir: environment.workdir ?? null,
    healthcheck: environment.healthcheck ?? null,
    network: networkOf(config, file),
    strategy: config.multi_step_reward_strategy ?? 'mean',
    steps: await Promise.all(steps.length > 0 ? steps : [readStep(folder, id, config, null)]),
  };
}

function assertImage(folder: string, id: string, image: string | null): void {
  const has = (name: string) => existsSync(path.join(folder, 'environment', name));
  if (image !== null) return;
  const compose = ['docker-compose.yaml', 'docker-compose.yml'].find(has);
  if (compose !== undefined)
    throw new HostingError(
      'hosting_unsupported',
      `${id}/environment has ${compose}. A task here is one container of environment/Dockerfile.`,
    );
  if (!has('Dockerfile')) throw sourceInvalid(`${id} has neither environment/Dockerfile nor environment.docker_image in ${TASK_FILE}.`);
}

type StepConfig = NonNullable<TaskConfig['steps']>[number];

async function readStep(folder: string, id: string, { agent, verifier }: TaskConfig, step: StepConfig | null): Promise<TaskStep> {
  const root = step === null ? '' : `steps/${step.name}/`;
  const existing = (name: string) => (existsSync(path.join(folder, name)) ? name : null);
  const instruction = await readText(path.join(folder, `${root}instruction.md`));
  if (instruction === null) throw sourceInvalid(`There is no ${id}/${root}instruction.md.`);
  const tests = [...new Set(['tests', `${root}tests`])].filter((name) => existing(name) !== null);
  if (tests.every((name) => existing(`${name}/test.sh`) === null)) throw sourceInvalid(`There is no ${id}/${root}tests/test.sh.`);
  const solutions = [...new Set([`${root}solution`, 'solution'])];
  return {
    name: step?.name ?? id,
    instruction: stripCanary(instruction),
    tests,
    solution: solutions.find((name) => existing(`${name}/solve.sh`) !== null) ?? null,
    workdir: step === null ? null : existing(`${root}workdir`),
    agentSeconds: step?.agent.timeout_sec ?? agent.timeout_sec ?? null,
    agentUser: textOf(step?.agent.user ?? agent.user),
    verifierSeconds: step?.verifier.timeout_sec ?? verifier.timeout_sec,
    verifierUser: textOf(step?.verifier.user ?? verifier.user),
    verifierVariables: { ...verifier.env, ...step?.verifier.env },
    minReward: step?.min_reward ?? null,
    healthcheck: step?.healthcheck ?? null,
  };
}

const textOf = (user: string | number | null | undefined): string | null => (user == null ? null : String(user));

/** Without the lines at the beginning by which data sets are found again, which agents should not see (`strip_canary` of Harbor's `task.py`). */
function stripCanary(text: string): string {
  const lines = text.split('\n');
  const isCanary = (line: string) => /^(?:<!--.*canary.*-->|#.*canary.*)$/i.test(line.trim());
  let first = lines.findIndex((line) => !isCanary(line));
  if (first === -1) return '';
  while (first < lines.length && lines[first]!.trim() === '') first += 1;
  return lines.slice(first).join('\n');
}
