import { expect, test } from 'vitest';
import { assertLimits, limitsOf } from './task-limits.ts';

const settings = { cpus: 2, memoryMb: 1_024, pids: 512, diskMb: 512, gpus: 0 };
const task = (id: string, cpus: number | null, memoryMb: number | null) => ({ id, cpus, memoryMb });
const refusal = (tasks: Parameters<typeof assertLimits>[0], engineMb: number | null = null) => {
  try {
    assertLimits(tasks, settings, engineMb);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
};

test('a task that wants more than its environment gives is named, with the setting', () => {
  expect(refusal([])).toBeNull();
  expect(refusal([task('a', null, null), task('b', 2, 1_024)])).toBeNull();
  expect(refusal([task('a', 1, 2_048), task('b', null, 4_096), task('c', null, null)])).toBe(
    'b/task.toml: memory_mb 4096 is more than the 1024 of the environment. Raise its setting: --memory 4096m.',
  );
  expect(refusal([task('a', 2.5, null)])).toBe(
    'a/task.toml: cpus 2.5 is more than the 2 of the environment. Raise its setting: --cpus 2.5.',
  );
  expect(refusal([task('a', null, 4_096)], 2_048)).toBe('a/task.toml: memory_mb 4096 is more than the 2048 of the engine.');
});

test('a container has the limits of its task, at most those of the settings', () => {
  expect(limitsOf(task('a', null, null), settings)).toEqual(settings);
  expect(limitsOf(task('a', 1, 512), settings)).toEqual({ ...settings, cpus: 1, memoryMb: 512 });
  expect(limitsOf(task('a', 64, 65_536), settings)).toEqual(settings);
});
