import { TOO_LARGE } from '../docker/engine/answer.ts';
import { isStatus } from '../docker/engine/engine.ts';
import { HostingError } from '../provider/hosting-error.ts';
import { parseRewardJson, parseRewardText, RewardError, type Rewards } from './rewards.ts';
import { waitUntilHealthy } from './healthcheck.ts';
import type { Healthcheck } from './task-config.ts';
import type { TaskContainer } from './task-container.ts';
import { type NewFolder, packTaskFiles } from './task-files.ts';
import type { TaskStep } from './task-folder.ts';

/** The tests gave no reward: they crashed, took too long or wrote nothing. It never counts as a reward of 0. */
export class GradeError extends Error {
  /** The end of what the tests wrote. */
  readonly output: string;

  constructor(message: string, output = '', options?: ErrorOptions) {
    super(message, options);
    this.output = output;
  }
}

export interface GradeOptions {
  /** The task's folder. */
  folder: string;
  step: TaskStep;
  variables: Readonly<Record<string, string>>;
  /** Of the task; null: it has none. */
  healthcheck: Healthcheck | null;
  /** Ends all processes of the agent before. What the image's own program starts, starts again. */
  endsProcesses: boolean;
}

/** Folders of Harbor in a container. */
const ROOT = '/logs';
const VERIFIER = '/logs/verifier';
export const LOGS: readonly NewFolder[] = [ROOT, '/logs/agent', VERIFIER, '/logs/artifacts'].map((name) => ({ name }));
const TESTS = '/tests';
export const SOLUTION = '/solution';
/** With these an agent could write the result of any test. An agent that is root can do the same with others; docs/hosting.md says so. */
const PROTECTED = ['/etc/ld.so.preload', ...['bash', 'sh', 'env'].flatMap((name) => [`/bin/${name}`, `/usr/bin/${name}`])];
const CLEAN_MS = 60_000;
const MAX_REWARD_BYTES = 1_048_576;
const SHOWN_CHARS = 4_000;

/**
 * Runs the tests of a step, as `Verifier.verify` of Harbor: /tests is new, /logs/verifier is empty, and `test.sh` runs with the variables of the
 * image and of the task, not with those of the agent's shell. Rejects with `GradeError`. `removeTests` before an agent runs again.
 */
export async function grade(
  container: TaskContainer,
  options: GradeOptions,
  signal: AbortSignal,
): Promise<{ rewards: Rewards; output: string }> {
  const { folder, step, variables } = options;
  if (options.endsProcesses) await container.restart(signal);
  const changed = await container.changedPaths(signal).catch((error: unknown) => {
    if (!isStatus(error, TOO_LARGE)) throw error;
    throw new GradeError('The container has so many changed files that they cannot be listed, so its tests cannot run.', '', {
      cause: error,
    });
  });
  const replaced = PROTECTED.filter((path) => changed.has(path));
  if (replaced.length > 0) throw new GradeError(`The agent changed ${replaced.join(', ')}, with which the tests run.`);
  if (options.endsProcesses) await waitUntilHealthy(container, options.healthcheck, null, signal);
  const isShared = options.endsProcesses || step.verifierUser === step.agentUser;
  const owner = isShared ? null : await verifierId(container, step, signal);
  // A program of the agent that runs on must not create files in the place of those that are removed.
  if (owner !== null) await container.upload(() => packTaskFiles(folder, [], [{ name: ROOT, mode: 0o700 }], signal), signal);
  await clean(container, [TESTS, SOLUTION, VERIFIER], signal);
  const uploads = step.tests.map((from) => ({ from, to: TESTS }));
  await container.upload(() => packTaskFiles(folder, uploads, owner === null ? LOGS : logsOf(owner), signal), signal);
  const command = `(${TESTS}/test.sh) > ${VERIFIER}/test-stdout.txt 2>&1`;
  const timeoutMs = step.verifierSeconds * 1_000;
  const { code } = await container.run({ program: ['bash', '-c', command], user: step.verifierUser, variables, timeoutMs }, signal);
  const output = await outputOf(container, signal);
  if (code === null) throw new GradeError(`The tests took longer than ${step.verifierSeconds} s.`, output);
  return { rewards: await readRewards(container, code, output, signal), output };
}

/** The id of the user that runs the tests. */
async function verifierId(container: TaskContainer, { verifierUser: user }: TaskStep, signal: AbortSignal): Promise<number> {
  const { code, output } = await container.run({ program: ['bash', '-c', 'echo "$EUID"'], user, timeoutMs: CLEAN_MS }, signal);
  if (code !== 0 || !/^\d+\n$/.test(output)) throw new GradeError('The id of the user of the tests cannot be read.', output);
  return Number(output);
}

/** The folders of /logs while programs of the agent run on: only the tests write the reward. */
const logsOf = (owner: number): NewFolder[] =>
  LOGS.map(({ name }) => ({
    name,
    ...(name === ROOT && { mode: 0o755 }),
    ...(name === VERIFIER && { mode: 0o700, uid: owner }),
  }));

async function readRewards(container: TaskContainer, code: number, output: string, signal: AbortSignal): Promise<Rewards> {
  const read = (name: string) => container.readFile(`${VERIFIER}/${name}`, MAX_REWARD_BYTES, signal);
  try {
    const json = await read('reward.json');
    if (json !== null) return parseRewardJson(json.toString());
    const text = await read('reward.txt');
    if (text !== null) return parseRewardText(text.toString());
  } catch (error) {
    if (!(error instanceof RewardError)) throw error;
    throw new GradeError(`The tests wrote no reward that can be read: ${error.message}`, output, { cause: error });
  }
  throw new GradeError(`The tests ended with status ${code} and wrote neither reward.txt nor reward.json to ${VERIFIER}.`, output);
}

async function outputOf(container: TaskContainer, signal: AbortSignal): Promise<string> {
  const program = ['tail', '-c', String(SHOWN_CHARS), `${VERIFIER}/test-stdout.txt`];
  const { code, output } = await container.run({ program, user: '0', timeoutMs: CLEAN_MS }, signal);
  return code === 0 ? output : '';
}

/** Removes folders and verifies with the engine that they are gone: an agent may have made links of them, or have changed `rm`. */
async function clean(container: TaskContainer, folders: readonly string[], signal: AbortSignal): Promise<void> {
  const { output } = await container.run({ program: ['rm', '-rf', '--', ...folders], user: '0', timeoutMs: CLEAN_MS }, signal);
  const [logs, ...kinds] = await Promise.all(['/logs', ...folders].map((path) => container.kindOf(path, signal)));
  if (logs === 'other' || kinds.some((kind) => kind !== 'none'))
    throw new GradeError(
      `The container has ${[...folders, '/logs'].join(', ')} in a form that the agent chose, so its tests cannot run.`,
      output,
    );
}

/** What the tests of a step leave, which the agent must not see. */
export const removeTests = (container: TaskContainer, signal: AbortSignal): Promise<void> =>
  clean(container, [TESTS, SOLUTION, VERIFIER], signal);

/** Creates the folders of /logs. */
export async function prepare(container: TaskContainer, folder: string, signal: AbortSignal): Promise<void> {
  await container.upload(() => packTaskFiles(folder, [], LOGS, signal), signal);
}

/** Copies the files of a step to the working directory and runs their `setup.sh`. */
export async function setUpStep(container: TaskContainer, folder: string, step: TaskStep, signal: AbortSignal): Promise<void> {
  const { workdir: from } = step;
  if (from === null) return;
  const { output } = await container.run({ program: ['bash', '-c', 'pwd'], user: step.agentUser, timeoutMs: CLEAN_MS }, signal);
  const workdir = output.trim();
  if (!workdir.startsWith('/')) throw new HostingError('instance_failed', 'The working directory of the container cannot be read.');
  await container.upload(() => packTaskFiles(folder, [{ from, to: workdir }], [], signal), signal);
  const script = `[ ! -f "$1/setup.sh" ] || bash "$1/setup.sh"`;
  const run = { program: ['bash', '-c', script, 'setup', workdir], user: step.agentUser, timeoutMs: step.verifierSeconds * 1_000 };
  const { code, output: said } = await container.run(run, signal);
  if (code !== 0)
    throw new HostingError('instance_failed', `setup.sh of the step ${step.name} failed (status ${code}): ${said.slice(-SHOWN_CHARS)}`);
}
