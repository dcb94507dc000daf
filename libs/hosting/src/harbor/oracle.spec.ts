import { expect, test } from 'vitest';
import { BuildLog } from '../process/build-log.ts';
import { HostingError } from '../provider/hosting-error.ts';
import { asVerified, verifyOracle } from './oracle.ts';
import type { BuiltTask } from './trial.ts';

const step = { solution: 'solution' } as BuiltTask['steps'][number];
const task = (id: string, given: Partial<BuiltTask> = {}): BuiltTask =>
  ({ id, keepsProcesses: false, steps: [step], ...given }) as Partial<BuiltTask> as BuiltTask;
const unsolvable = task('unsolvable', { steps: [step, { ...step, solution: null }] });

test('programs run on for tasks that were not verified only if the sample has one that needs it, and never without a solution', () => {
  const tasks = [task('server'), task('plain'), task('other'), unsolvable];
  const keeping = (...verified: BuiltTask[]) =>
    asVerified(tasks, new Map(verified.map((one) => [one.id, one])))
      .filter(({ keepsProcesses }) => keepsProcesses)
      .map(({ id }) => id);
  expect(keeping()).toEqual([]);
  expect(keeping(task('plain'))).toEqual([]);
  expect(keeping(task('plain'), task('server', { keepsProcesses: true }))).toEqual(['server', 'other']);
});

test('a solution whose container ends, or does not start, fails the deploy with the name of its task and a line', async () => {
  const verify = (error: Error) => {
    const options = { folder: '/none', known: {}, start: () => Promise.reject(error), log: new BuildLog(() => {}) };
    return verifyOracle(task('hungry'), options, AbortSignal.timeout(10_000));
  };
  for (const code of ['sandbox_lost', 'instance_failed'] as const)
    await expect(verify(new HostingError(code, 'The sandbox has ended: killed.'))).rejects.toMatchObject({
      code: 'build_failed',
      message: expect.stringContaining('Task hungry: its solution was not graded. The sandbox has ended: killed.'),
      line: expect.any(Number),
    });
  await expect(verify(new HostingError('engine_unavailable', 'away'))).rejects.toMatchObject({ code: 'engine_unavailable' });
});
