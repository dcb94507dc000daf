import { useEffect, useSyncExternalStore } from 'react';
import { queryClient } from '../client.ts';
import { Feed, type FeedState, type Focus } from './feed.ts';

export const feed = new Feed(queryClient);

/** The state of this tab's feed. */
export const useFeed = (): FeedState => useSyncExternalStore(feed.subscribe, feed.state);

/** Sets the focus of the page while it is mounted. The stream then sends counts of the run and changes of the rollout. */
export function useFocus({ run, rollout }: Focus): void {
  useEffect(() => (run || rollout ? feed.focus({ ...(run && { run }), ...(rollout && { rollout }) }) : undefined), [run, rollout]);
}
