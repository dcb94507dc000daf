import type { EnvironmentReport, TaskSpec } from '@palestra/protocol';
import { playEpisode } from '../play/play-episode.ts';
import { solver } from '../play/play-task.ts';
import type { Player } from '../play/player.ts';
import { randomPlayer } from '../play/random-player.ts';
import type { Subject } from '../play/subject.ts';
import { spread } from './evidence.ts';
import { meanInterval } from './interval.ts';

export interface PlayersOptions {
  /** Default: the first split of type `test`, else the first one. */
  split?: string | undefined;
  /** Tasks that each player plays once. */
  tasks: number;
  maxCalls: number;
  range: readonly [number, number];
  signal?: AbortSignal | undefined;
}

const TOLERANCE = 1e-9;

/** What each player reaches: the players of the definition, its solutions, and a random player. A failed episode counts as the lowest reward. */
export async function scorePlayers(subject: Subject, options: PlayersOptions): Promise<EnvironmentReport['players']> {
  const splits = await subject.splits();
  const split = options.split ?? (splits.find(({ type }) => type === 'test') ?? splits[0])?.name;
  if (split === undefined) return [];
  const indexes = spread(await subject.numTasks(split), options.tasks);
  if (indexes.length === 0) return [];
  const scores: EnvironmentReport['players'] = [];
  for (const { name, description, of } of playersOf(subject)) {
    const totals: number[] = [];
    for (const index of indexes) {
      options.signal?.throwIfAborted();
      totals.push(await total(subject, split, index, of, options));
    }
    const [, highest] = options.range;
    const solved = totals.filter((value) => value >= highest - TOLERANCE).length / totals.length;
    scores.push({ name, description, split, tasks: indexes.length, samples: 1, ...meanInterval(totals, options.range), solved });
  }
  return scores;
}

interface NamedPlayer {
  name: string;
  description: string;
  of(task: TaskSpec): Promise<Player>;
}

function playersOf({ environment }: Subject): NamedPlayer[] {
  const defined = environment?.players ?? [];
  const players = defined.some(({ name }) => name === 'random') ? defined : [randomPlayer, ...defined];
  const named = players.map((player): NamedPlayer => ({ name: player.name, description: player.description, of: async () => player }));
  if (!environment?.solve) return named;
  return [...named, { name: 'solve', description: 'The verified solution of each task.', of: (task) => solver(environment, task) }];
}

async function total(
  subject: Subject,
  split: string,
  index: number,
  of: NamedPlayer['of'],
  { maxCalls, range, signal }: PlayersOptions,
): Promise<number> {
  try {
    const [task] = await subject.tasks(split, index, index + 1);
    const played = await playEpisode(subject, { split, index }, { player: await of(task), seed: [0, split, index], maxCalls, signal });
    return played.total;
  } catch {
    signal?.throwIfAborted();
    return range[0];
  }
}
