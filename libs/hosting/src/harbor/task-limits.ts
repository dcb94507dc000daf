import { HostingError } from '../provider/hosting-error.ts';
import type { Resources } from '../provider/provider.port.ts';
import type { HarborTask } from './task-folder.ts';

type Task = Pick<HarborTask, 'id' | 'cpus' | 'memoryMb'>;

/**
 * Throws `hosting_unsupported` for a task that wants more than the settings of its environment give, or more memory than the engine has
 * (`engineMb`; null: unknown). The error names the task that wants most, so that one change of the settings is enough.
 */
export function assertLimits(tasks: readonly Task[], { cpus, memoryMb }: Resources, engineMb: number | null): void {
  const most = (field: 'cpus' | 'memoryMb') => tasks.toSorted((a, b) => (b[field] ?? 0) - (a[field] ?? 0))[0];
  const [memory, processors] = [most('memoryMb'), most('cpus')];
  const wantedMb = memory?.memoryMb ?? 0;
  if (engineMb !== null && wantedMb > engineMb)
    throw new HostingError(
      'hosting_unsupported',
      `${memory!.id}/task.toml: memory_mb ${wantedMb} is more than the ${engineMb} of the engine.`,
    );
  if (wantedMb > memoryMb)
    throw new HostingError(
      'hosting_unsupported',
      `${memory!.id}/task.toml: memory_mb ${wantedMb} is more than the ${memoryMb} of the environment. Raise its setting: --memory ${wantedMb}m.`,
    );
  const wantedCpus = processors?.cpus ?? 0;
  if (wantedCpus > cpus)
    throw new HostingError(
      'hosting_unsupported',
      `${processors!.id}/task.toml: cpus ${wantedCpus} is more than the ${cpus} of the environment. Raise its setting: --cpus ${wantedCpus}.`,
    );
}

/** Limits of a task's container. The settings may be lower than they were when the task was deployed. */
export const limitsOf = (task: Task, settings: Resources): Resources => ({
  ...settings,
  cpus: Math.min(task.cpus ?? settings.cpus, settings.cpus),
  memoryMb: Math.min(task.memoryMb ?? settings.memoryMb, settings.memoryMb),
});
