import { PalestraApiError, type PalestraClient } from '@palestra/client';
import type { TaskSource } from '@palestra/exports';

/** Reads each task with a separate session, like a trainer. Without a reservation: a session of three requests needs no queue. */
export function sessionTaskSource(client: PalestraClient): TaskSource {
  const versions = new Map<string, Promise<number | null>>();
  const versionOf = (environment: string) => {
    const known = versions.get(environment) ?? readVersion(client, environment);
    versions.set(environment, known);
    return known;
  };
  return {
    splits: (environment) => client.environments.splits(environment),
    numTasks: (environment, split) => client.environments.numTasks(environment, split),
    specs: (environment, split, start, stop) => client.environments.taskRange(environment, split, start, stop),
    async difficulty(environment, split) {
      const tasks = await client.environments.taskDifficulty(environment, { split });
      return new Map(tasks.map(({ task_index, avg_reward, num_rollouts }) => [task_index, { avg_reward, num_rollouts }]));
    },
    async readTask(environment, split, index, wanted, signal) {
      const version = wanted.spec ? await versionOf(environment) : null;
      const session = await client.session({ environment, split, index, signal, reserve: false, pingIntervalMs: 0 });
      try {
        const [prompt, { tools }, spec, messages] = await Promise.all([
          session.prompt(),
          session.taskTools(),
          wanted.spec ? client.environments.task(environment, split, index) : null,
          wanted.messages ? session.messages() : [],
        ]);
        return { prompt, messages, tools, spec, version };
      } finally {
        await session.close();
      }
    },
  };
}

/** null on a server without versions, and for a name without its owner. */
async function readVersion(client: PalestraClient, environment: string): Promise<number | null> {
  if (!environment.includes('/')) return null;
  try {
    return (await client.environments.get(environment)).version;
  } catch (error) {
    if (error instanceof PalestraApiError && error.status === 404) return null;
    throw error;
  }
}
