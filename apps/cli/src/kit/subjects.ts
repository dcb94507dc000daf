import { randomUUID } from 'node:crypto';
import { type PalestraClient, ToolCallError } from '@palestra/client';
import { resultText, type Subject, textOf, toolsWithTerminal } from '@palestra/environment-kit';
import type { Backend } from '@palestra/session';

export interface SubjectSettings {
  rewardRange: readonly [number, number] | null;
  signal: AbortSignal;
}

/** An environment of a running ORS or OpenEnv server. `close` does not close the backend. */
export function backendSubject(backend: Backend, env: string, { rewardRange, signal }: SubjectSettings): Subject {
  return {
    name: env,
    environment: null,
    rewardRange,
    splits: () => backend.splits(env, signal),
    numTasks: (split) => backend.numTasks(env, split, signal),
    tasks: (split, start, stop) => backend.taskRange(env, split, start, stop, signal),
    async open(chosen) {
      const task = 'task' in chosen ? { kind: 'spec' as const, spec: chosen.task } : { kind: 'index' as const, ...chosen };
      const reference = await backend.create({ sid: randomUUID(), env, task, toolsetName: null, secrets: {} }, signal);
      const session = backend.session(reference);
      const close = () => session.delete(AbortSignal.timeout(10_000));
      try {
        return {
          prompt: textOf(await session.prompt(signal)),
          tools: toolsWithTerminal(await session.taskTools(signal)),
          async call(tool, input) {
            const { text: json, ok, reason, reward, finished } = await session.call({ tool, input, taskId: randomUUID() }, signal);
            return { text: resultText(json), reward, finished, refused: ok ? null : (reason ?? 'refused'), json };
          },
          close,
        };
      } catch (error) {
        await close().catch(() => {});
        throw error;
      }
    },
    close: async () => {},
  };
}

const SEEDS = 1_000;

/**
 * Plays an OpenEnv server without tasks by seeds. Such a server has one task without content, and `reset` without a seed is random by design.
 */
export function seededSubject(subject: Subject): Subject {
  const isSeeded = async (split: string) => {
    const specs = (await subject.numTasks(split)) === 1 ? await subject.tasks(split, 0, 1) : [];
    return specs.length === 1 && JSON.stringify(specs[0]) === '{}';
  };
  const seed = (index: number) => ({ seed: index });
  return {
    ...subject,
    numTasks: async (split) => ((await isSeeded(split)) ? SEEDS : subject.numTasks(split)),
    async tasks(split, start, stop) {
      if (!(await isSeeded(split))) return subject.tasks(split, start, stop);
      return Array.from({ length: Math.max(0, Math.min(stop, SEEDS) - start) }, (_, offset) => seed(start + offset));
    },
    async open(chosen) {
      return subject.open('split' in chosen && (await isSeeded(chosen.split)) ? { task: seed(chosen.index) } : chosen);
    },
  };
}

/** An environment that is registered with a Palestra service. */
export function registeredSubject(client: PalestraClient, environment: string, { rewardRange, signal }: SubjectSettings): Subject {
  return {
    name: environment,
    environment: null,
    rewardRange,
    splits: () => client.environments.splits(environment),
    numTasks: (split) => client.environments.numTasks(environment, split),
    async tasks(split, start, stop) {
      const specs: unknown[] = [];
      while (start + specs.length < stop) {
        const limit = Math.min(500, stop - start - specs.length);
        const { tasks } = await client.environments.tasks(environment, { split, start: start + specs.length, limit });
        if (tasks.length === 0) break;
        specs.push(...tasks.map(({ task_spec }) => task_spec));
      }
      return specs;
    },
    async open(chosen) {
      const task = 'task' in chosen ? { taskSpec: chosen.task } : chosen;
      const session = await client.session({ environment, ...task, signal });
      try {
        return {
          prompt: textOf(await session.prompt()),
          tools: toolsWithTerminal(await session.taskTools()),
          async call(tool, input) {
            try {
              const output = await session.call(tool, input);
              const { blocks, reward, finished } = output;
              return { text: textOf(blocks), reward, finished, refused: null, json: JSON.stringify(output) };
            } catch (error) {
              if (!(error instanceof ToolCallError)) throw error;
              const { reason, detail } = error;
              return { text: detail, reward: null, finished: false, refused: reason, json: JSON.stringify({ reason, detail }) };
            }
          },
          close: () => session.close(),
        };
      } catch (error) {
        await session.close();
        throw error;
      }
    },
    close: async () => {},
  };
}
