import type { PalestraClient } from '@palestra/client';
import type { TaskSource } from '@palestra/exports';

/** Reads each task with a separate session, like a trainer. Without a reservation: a session of three requests needs no queue. */
export function sessionTaskSource(client: PalestraClient): TaskSource {
  return {
    numTasks: (environment, split) => client.environments.numTasks(environment, split),
    async readTask(environment, split, index, signal) {
      const session = await client.session({ environment, split, index, signal, reserve: false, pingIntervalMs: 0 });
      try {
        const [prompt, { tools }] = await Promise.all([session.prompt(), session.taskTools()]);
        return { prompt, tools };
      } finally {
        await session.close();
      }
    },
  };
}
