import type { TaskSource } from '@palestra/exports';
import { newUuid } from '@palestra/kit';
import { PalestraError } from '@palestra/protocol';
import type { BackendSession, Caller, EnvironmentDirectory } from '@palestra/session';

/** Deadline of one task; its setup may be slow. */
const TASK_DEADLINE_MS = 300_000;
const TEARDOWN_DEADLINE_MS = 30_000;

/**
 * Reads tasks directly from the environments' servers. The directory checks permission for every task, as for a session. The episode needs
 * no ledger, because no calls run in it.
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

/** A failed teardown keeps the row that was read; the environment's server reaps the episode. */
async function tearDown(session: BackendSession): Promise<void> {
  await session.delete(AbortSignal.timeout(TEARDOWN_DEADLINE_MS)).catch(() => {});
}
