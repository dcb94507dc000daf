import { SeededRandom } from '../random.ts';
import type { Player, PlayedSession, ToolInput } from './player.ts';
import { withinTime } from './within-time.ts';
import type { Subject, SubjectEpisode, SubjectResult, SubjectTask } from './subject.ts';

export interface EpisodeCall extends ToolInput, SubjectResult {}

/** What happened in one episode. */
export interface PlayedEpisode {
  prompt: string;
  tools: SubjectEpisode['tools'];
  calls: EpisodeCall[];
  /** Sum of the rewards; 0 without any. */
  total: number;
  finished: boolean;
}

export interface EpisodeOptions {
  player: Player;
  /** Parts of the seed of `session.random()`. */
  seed: readonly (string | number)[];
  /** A player that makes more calls is stopped with an error. */
  maxCalls: number;
  /** Default 60 000. */
  callTimeoutMs?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** Opens an episode, lets the player play it, and closes it. Rejects if the environment or the player fails. */
export async function playEpisode(subject: Subject, task: SubjectTask, options: EpisodeOptions): Promise<PlayedEpisode> {
  options.signal?.throwIfAborted();
  const episode = await subject.open(task);
  try {
    return await playOpened(episode, options);
  } finally {
    await episode.close();
  }
}

export async function playOpened(
  episode: SubjectEpisode,
  { player, seed, maxCalls, callTimeoutMs = 60_000, signal }: EpisodeOptions,
): Promise<PlayedEpisode> {
  const { prompt, tools } = episode;
  const calls: EpisodeCall[] = [];
  const random = new SeededRandom(...seed);
  const session: PlayedSession = {
    prompt,
    tools,
    random: () => random.next(),
    async call(tool, input) {
      signal?.throwIfAborted();
      if (calls.length >= maxCalls)
        throw new Error(`The player ${player.name} made more than ${maxCalls} calls without ending the episode.`);
      const result = await withinTime(episode.call(tool, input), callTimeoutMs, `no result of ${tool}`);
      calls.push({ tool, input, ...result });
      const { text, reward, finished } = result;
      return { text, reward, finished };
    },
  };
  await player.play(session);
  const total = calls.reduce((sum, { reward }) => sum + (reward ?? 0), 0);
  return { prompt, tools, calls, total, finished: calls.some(({ finished }) => finished) };
}
