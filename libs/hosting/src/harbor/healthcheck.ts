import { setTimeout as sleep } from 'node:timers/promises';
import { HostingError } from '../provider/hosting-error.ts';
import type { Healthcheck } from './task-config.ts';
import type { TaskContainer } from './task-container.ts';

/** Waits until a command succeeds, as `run_healthcheck` of Harbor: failures of the start period do not count. Rejects with `instance_failed`. */
export async function waitUntilHealthy(container: TaskContainer, check: Healthcheck | null, user: string | null, signal: AbortSignal) {
  if (check === null) return;
  const startPeriodEnds = Date.now() + check.start_period_sec * 1_000;
  for (let failures = 0; ;) {
    const isStarting = Date.now() < startPeriodEnds;
    const command = { program: ['bash', '-c', check.command], user, timeoutMs: check.timeout_sec * 1_000 };
    const { code, output } = await container.run(command, signal);
    if (code === 0) return;
    if (!isStarting) failures += 1;
    if (failures >= check.retries)
      throw new HostingError('instance_failed', `The health check of the task failed ${failures} times: ${output.slice(-500)}`);
    await sleep((isStarting ? check.start_interval_sec : check.interval_sec) * 1_000, undefined, { signal });
  }
}
