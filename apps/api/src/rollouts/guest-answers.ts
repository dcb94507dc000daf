import type { RolloutCalls, RolloutDiff, RolloutHeader, RolloutList, RolloutRow, RolloutView } from '@palestra/protocol';

/** Answers for readers with a share link: without sessions, ids for other pages, and other rollouts (ADR 18). */

const withoutIds = <T extends Pick<RolloutRow, 'session' | 'task'>>(row: T): T => ({ ...row, session: null, task: null });
const NO_NEIGHBOURS = { previous_sample: null, next_sample: null, best_sample: null, previous_step: null, next_step: null };

export const guestRollout = (rollout: RolloutView): RolloutView => withoutIds(rollout);
export const guestHeader = (header: RolloutHeader): RolloutHeader => ({ ...withoutIds(header), neighbours: NO_NEIGHBOURS });
export const guestList = (list: RolloutList): RolloutList => ({ ...list, rollouts: list.rollouts.map(withoutIds) });
export const guestDiff = (diff: RolloutDiff): RolloutDiff => ({ ...diff, a: withoutIds(diff.a), b: withoutIds(diff.b) });
export const guestCalls = (answer: RolloutCalls): RolloutCalls => ({
  ...answer,
  session: null,
  calls: answer.calls.map((call) => ({ ...call, session: '' })),
});
