import { type OutputBlock, parseJson, type RunToolOutput, type TaskSpec } from '@palestra/protocol';
import type { Environment } from '../definition.ts';
import { EnvironmentHost } from '../host/environment-host.ts';
import { SeededRandom } from '../random.ts';
import type { PlayedResult, Player, PlayedSession, ToolInput } from './player.ts';

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
  const host = new EnvironmentHost([environment]);
  try {
    const task = options.task ?? (await host.task(null, split, index));
    const player = options.player ?? (await solver(environment, task));
    const sid = 'play';
    await host.create({ sid, env: null, task: { kind: 'spec', spec: task }, toolsetName: null, secrets: {} });
    const prompt = textOf(await host.prompt(sid, signal));
    const { tools, terminal_tool: terminal } = await host.taskTools(sid);
    const calls: PlayedCall[] = [];
    const random = new SeededRandom(seed, split, index);
    const session: PlayedSession = {
      prompt,
      tools: terminal
        ? [...tools, { name: terminal.name, description: terminal.description, input_schema: terminalSchema(terminal.arg) }]
        : tools,
      random: () => random.next(),
      async call(tool, input) {
        signal?.throwIfAborted();
        if (calls.length >= maxCalls)
          throw new Error(`The player ${player.name} made more than ${maxCalls} calls without ending the episode.`);
        const { text, reason, reward, finished } = await host.call(sid, tool, input, signal);
        const result = { text: resultText(text), reward, finished };
        calls.push({ tool, input, ...result, refused: reason });
        return result;
      },
    };
    await player.play(session);
    const rewards = calls.flatMap(({ reward }) => reward ?? []);
    const total = rewards.reduce((sum, reward) => sum + reward, 0);
    return { prompt, calls, rewards, total, finished: calls.some(({ finished }) => finished) };
  } finally {
    await host.close();
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

const terminalSchema = (arg: string | null) => (arg === null ? null : { type: 'object', properties: { [arg]: { type: 'string' } } });

/** The text blocks; an image is `[image]`. */
export const textOf = (blocks: readonly OutputBlock[]): string =>
  blocks.map((block) => (block.type === 'text' ? block.text : '[image]')).join('\n');

function resultText(json: string): string {
  const result = parseJson(json) as RunToolOutput;
  return result.ok ? textOf(result.output.blocks) : result.error;
}
