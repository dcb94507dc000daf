import type { EnvironmentReport, TaskSpec } from '@palestra/protocol';
import { playEpisode } from '../play/play-episode.ts';
import { solver } from '../play/play-task.ts';
import type { Player } from '../play/player.ts';
import { randomPlayer } from '../play/random-player.ts';
import type { Subject } from '../play/subject.ts';
import { round } from './checks.ts';
import { spread } from './evidence.ts';
import { meanInterval } from './interval.ts';

export interface PlayersOptions {
  /** Default: the first split of type `test`, else the first one. */
  split?: string | undefined;
  /** Tasks that each player plays once. */
  tasks: number;
  /** No task is begun after this time. */
  budgetMs: number;
  maxCalls: number;
  range: readonly [number, number];
  signal?: AbortSignal | undefined;
}

const TOLERANCE = 1e-9;

/** What each player reaches: the players of the definition, its solutions, and a random player. A failed episode counts as the lowest reward. */
export async function scorePlayers(subject: Subject, options: PlayersOptions): Promise<EnvironmentReport['players']> {
  const splits = await subject.splits();
  if (options.split !== undefined && !splits.some(({ name }) => name === options.split)) {
    const names = splits.map(({ name }) => name).join(', ') || 'none';
    throw new Error(`Unknown split "${options.split}" of ${subject.name}. Available: ${names}.`);
  }
  const split = options.split ?? (splits.find(({ type }) => type === 'test') ?? splits[0])?.name;
  if (split === undefined) return [];
  const indexes = spread(await subject.numTasks(split), options.tasks);
  if (indexes.length === 0) return [];
  const players = playersOf(subject);
  const totals = players.map((): number[] => []);
  const startedAt = performance.now();
  // All players play a task before the next one, so that they played the same tasks when the time is over.
  for (const index of indexes) {
    if (index !== indexes[0] && performance.now() - startedAt > options.budgetMs) break;
    for (const [at, { of }] of players.entries()) {
      options.signal?.throwIfAborted();
      totals[at]!.push(await total(subject, split, index, of, options));
    }
  }
  return players.map(({ name, description }, at) => ({ name, description, split, samples: 1, ...figuresOf(totals[at]!, options.range) }));
}

function figuresOf(totals: number[], [lowest, highest]: readonly [number, number]) {
  const solved = totals.filter((value) => value >= highest - TOLERANCE).length / totals.length;
  // Rewards outside of the range are reported by a check. The interval must hold them.
  const { mean, low, high } = meanInterval(totals, [Math.min(lowest, ...totals), Math.max(highest, ...totals)]);
  return { tasks: totals.length, mean: round(mean), low: round(low), high: round(high), solved: round(solved) };
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
