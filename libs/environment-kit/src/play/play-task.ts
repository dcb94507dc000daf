import type { TaskSpec } from '@palestra/protocol';
import type { Environment } from '../definition.ts';
import { playOpened } from './play-episode.ts';
import type { PlayedResult, Player, ToolInput } from './player.ts';
import { environmentSubject } from './subject.ts';

export interface PlayTaskOptions {
  /** Default: the first split. */
  split?: string;
  /** Index of the task in its split. Default 0. */
  index?: number;
  /** Plays this task instead of one of a split. */
  task?: TaskSpec;
  /** Seed of `session.random()`, together with the split and the index. Default 0. */
  seed?: number;
  /** Default: the calls that the environment's `solve` returns for the task. */
  player?: Player;
  /** A player that makes more calls is stopped with an error. Default 1 000. */
  maxCalls?: number;
  signal?: AbortSignal;
}

export interface PlayedCall extends ToolInput, PlayedResult {
  /** Why the call was refused (`input_validation`, `not_found`, `episode_finished`, ...), or null. */
  refused: string | null;
}

export interface PlayedTask {
  prompt: string;
  calls: PlayedCall[];
  /** Rewards of the scored calls, in order. */
  rewards: number[];
  /** Sum of the rewards; 0 without any. */
  total: number;
  finished: boolean;
}

/**
 * Plays one task in this process. The same arguments give the same calls if the environment is deterministic. Rejects if the environment
 * or the player fails.
 */
export async function playTask(environment: Environment, options: PlayTaskOptions = {}): Promise<PlayedTask> {
  const { split = environment.splits[0]!.name, index = 0, seed = 0, maxCalls = 1_000, signal } = options;
  const subject = environmentSubject(environment);
  try {
    const [task] = options.task === undefined ? await subject.tasks(split, index, index + 1) : [options.task];
    if (task === undefined) throw new RangeError(`Split "${split}" of ${environment.name} has no task ${index}.`);
    const player = options.player ?? (await solver(environment, task));
    const episode = await subject.open({ task });
    const played = await playOpened(episode, { player, seed: [seed, split, index], maxCalls, signal });
    const calls = played.calls.map(({ tool, input, text, reward, finished, refused }) => ({
      tool,
      input,
      text,
      reward,
      finished,
      refused,
    }));
    const { prompt, total, finished } = played;
    return { prompt, calls, rewards: calls.flatMap(({ reward }) => reward ?? []), total, finished };
  } finally {
    await subject.close();
  }
}

/** A player that makes the calls of the environment's `solve` for one task. Rejects without `solve`. */
export async function solver(environment: Environment, task: TaskSpec): Promise<Player> {
  if (!environment.solve) throw new Error(`Environment ${environment.name} has no solve(task). Pass a player.`);
  const solution = await environment.solve(task as never);
  return {
    name: 'solve',
    description: 'The calls of solve(task).',
    async play(session) {
      for (const { tool, input } of solution) {
        const { finished } = await session.call(tool, input);
        if (finished) return;
      }
    },
  };
}
