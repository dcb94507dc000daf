import type { TaskSource } from '@palestra/exports';
import { newUuid } from '@palestra/kit';
import { type Message, type MessageBlock, PalestraError } from '@palestra/protocol';
import type { BackendSession, Caller, EnvironmentDirectory } from '@palestra/session';
import type pg from 'pg';
import { selectTaskMeans } from '../runs/task-difficulty.sql.ts';

/** Deadline of one task; its setup may be slow. */
const TASK_DEADLINE_MS = 300_000;
const TEARDOWN_DEADLINE_MS = 30_000;

/**
 * Reads tasks directly from the environments' servers. The directory checks permission for every task, as for a session. The episode needs
 * no ledger, because no calls run in it. All tasks are read from the version that was the newest when they were counted.
 */
export function backendTaskSource(directory: EnvironmentDirectory, pool: pg.Pool, caller: Caller): TaskSource {
  const versions = new Map<string, number>();
  const resolve = (environment: string) => {
    const version = versions.get(environment);
    return directory.resolve(version === undefined ? environment : `${environment}@${version}`, caller);
  };
  return {
    async splits(environment, signal) {
      const { backend } = await resolve(environment);
      return backend.splits(null, withDeadline(signal));
    },
    async numTasks(environment, split, signal) {
      const { backend, about } = await directory.resolve(environment, caller);
      if (about && !environment.includes('@')) versions.set(environment, about.version);
      return backend.numTasks(null, split, withDeadline(signal));
    },
    async specs(environment, split, start, stop, signal) {
      const { backend } = await resolve(environment);
      return backend.taskRange(null, split, start, stop, withDeadline(signal));
    },
    async difficulty(environment, split, signal) {
      const { environmentId, owner, name } = await resolve(environment);
      signal.throwIfAborted();
      const means = await selectTaskMeans(pool, { orgId: caller.orgId, environmentId, environment: `${owner}/${name}`, split });
      return new Map(means.map(({ index, ...difficulty }) => [index, difficulty]));
    },
    async readTask(environment, split, index, wanted, signal) {
      const { backend, about } = await resolve(environment);
      const deadline = withDeadline(signal);
      const task = { kind: 'index' as const, split, index };
      const ref = await backend.create({ sid: newUuid(), env: null, task, toolsetName: null, secrets: {} }, deadline);
      const session = backend.session(ref);
      try {
        const [prompt, { tools }, spec] = await Promise.all([
          session.prompt(deadline),
          session.taskTools(deadline),
          wanted.spec ? backend.task(null, split, index, deadline) : null,
        ]);
        const messages = wanted.messages ? await conversationOf(session, prompt, deadline) : [];
        return { prompt, messages, tools, spec, version: about?.version ?? null };
      } catch (error) {
        throw signal.aborted || !deadline.aborted ? error : new PalestraError('backend_timeout');
      } finally {
        await tearDown(session);
      }
    },
  };
}

const withDeadline = (signal: AbortSignal) => AbortSignal.any([signal, AbortSignal.timeout(TASK_DEADLINE_MS)]);

/** The prompt as one message if the environment's server has single prompts only. */
async function conversationOf(session: BackendSession, prompt: MessageBlock[], signal: AbortSignal): Promise<Message[]> {
  try {
    return await session.messages(signal);
  } catch (error) {
    if (!(error instanceof PalestraError) || error.code !== 'messages_unsupported') throw error;
    return [{ role: 'user', blocks: prompt, detail: null }];
  }
}

/** A failed teardown keeps the row that was read; the environment's server reaps the episode. */
async function tearDown(session: BackendSession): Promise<void> {
  await session.delete(AbortSignal.timeout(TEARDOWN_DEADLINE_MS)).catch(() => {});
}
