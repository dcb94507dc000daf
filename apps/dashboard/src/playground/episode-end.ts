import type { JsonValue, SessionCallView, SessionView } from '@palestra/protocol';
import { stringifyJson } from '@palestra/protocol';
import type { SessionChoice } from '../data/playground.ts';
import { formatReward } from '../format/number.ts';

export interface EpisodeEnd {
  solved: boolean;
  /** `Solved, .950` or `Ended: timed out, reward –`. */
  text: string;
}

const reasons: Partial<Record<SessionView['state'], string>> = {
  finished: 'finished',
  closed: 'session closed',
  expired: 'timed out',
  failed: 'setup failed',
  lost: 'session lost',
  diverged: 'replay differed',
};

/**
 * How the episode ended; null while it runs. A session has no success rule, which belongs to a run: it counts as solved if the call that
 * finished it has a positive reward and the total is positive.
 */
export function episodeEnd(
  { state, live, total_reward: total }: Pick<SessionView, 'state' | 'live' | 'total_reward'>,
  calls: readonly Pick<SessionCallView, 'finished' | 'reward'>[],
): EpisodeEnd | null {
  const finishing = calls.find(({ finished }) => finished);
  if (finishing && (finishing.reward ?? 0) > 0 && (total ?? 0) > 0) return { solved: true, text: `Solved, ${formatReward(total)}` };
  const reason = finishing ? 'finished' : live && state !== 'failed' && state !== 'finished' ? undefined : reasons[state];
  return reason === undefined ? null : { solved: false, text: `Ended: ${reason}, reward ${formatReward(total)}` };
}

/** The task of a session, to play it again; null if the client chose it at the reset, or the environment is not known. */
export function choiceOf({ environment, variant, task }: Pick<SessionView, 'environment' | 'variant' | 'task'>): SessionChoice | null {
  if (environment === null || variant === null || task === null) return null;
  if (task['kind'] === 'index') return { environment, variant, task: { split: String(task['split']), index: Number(task['index']) } };
  return task['kind'] === 'spec' ? { environment, variant, task: { spec: stringifyJson(task['spec'] as JsonValue) } } : null;
}

/** Returns the next task of the split, or the reason why no task follows. `count`: tasks of the split; null = unknown. */
export function nextChoice(choice: SessionChoice | null, count: number | null): SessionChoice | string {
  if (choice === null || 'spec' in choice.task) return 'A custom task has no next task';
  const { split, index } = choice.task;
  if (count !== null && index + 1 >= count) return 'This is the last task of the split';
  return { ...choice, task: { split, index: index + 1 } };
}
