import type { TaskSource } from '@palestra/exports';
import { newUuid } from '@palestra/kit';
import { PalestraError } from '@palestra/protocol';
import type { BackendSession, Caller, EnvironmentDirectory } from '@palestra/session';

/** Of one question to an environment; a task's setup may be slow. */
const TASK_DEADLINE_MS = 300_000;
const TEARDOWN_DEADLINE_MS = 30_000;

/**
 * Reads tasks from the environments' servers directly. Permission is checked by the directory for every task, as for a session;
 * the episode is not kept as one: nobody plays it, so it needs neither ledger nor tombstone.
 */
export function backendTaskSource(directory: EnvironmentDirectory, caller: Caller): TaskSource {
  return {
    async numTasks(environment, split, signal) {
      const { backend } = await directory.resolve(environment, caller);
      return backend.numTasks(null, split, withDeadline(signal));
    },
    async readTask(environment, split, index, signal) {
      const { backend } = await directory.resolve(environment, caller);
      const deadline = withDeadline(signal);
      const task = { kind: 'index' as const, split, index };
      const ref = await backend.create({ sid: newUuid(), env: null, task, toolsetName: null, secrets: {} }, deadline);
      const session = backend.session(ref);
      try {
        const [prompt, { tools }] = await Promise.all([session.prompt(deadline), session.taskTools(deadline)]);
        return { prompt, tools };
      } catch (error) {
        throw signal.aborted || !deadline.aborted ? error : new PalestraError('backend_timeout');
      } finally {
        await tearDown(session);
      }
    },
  };
}

const withDeadline = (signal: AbortSignal) => AbortSignal.any([signal, AbortSignal.timeout(TASK_DEADLINE_MS)]);

/** A failed teardown does not spoil the row that was read; the environment's server reaps what is left. */
async function tearDown(session: BackendSession): Promise<void> {
  await session.delete(AbortSignal.timeout(TEARDOWN_DEADLINE_MS)).catch(() => {});
}
