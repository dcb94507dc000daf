import { useEffect, useSyncExternalStore } from 'react';
import { queryClient } from '../client.ts';
import { Feed, type FeedState, type Focus } from './feed.ts';

export const feed = new Feed(queryClient);

/** The state of this tab's news. */
export const useFeed = (): FeedState => useSyncExternalStore(feed.subscribe, feed.state);

/** Says what this page is about, as long as it is there: the stream tells counts of the run, news of the rollout. */
export function useFocus({ run, rollout }: Focus): void {
  useEffect(() => (run || rollout ? feed.focus({ ...(run && { run }), ...(rollout && { rollout }) }) : undefined), [run, rollout]);
}
